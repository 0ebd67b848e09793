"""Settings and prices: what is wrong in the environment or in a file, and what each means."""

import os
from decimal import Decimal
from pathlib import Path

import pytest

from modeshift.configuration.prices import load_prices, parse_prices
from modeshift.configuration.settings import Settings, load_settings
from modeshift.models.usage import Tokens, find_listed_window
from modeshift.modes.errors import ConfigurationError, UserError
from modeshift.testing.plugin import Snapshot
from tests.tables import rows

TOKEN = "alices-own-token"  # noqa: S105
OTHERS = """
    ALLOWED_HOSTS ANTHROPIC_API_KEY ANTHROPIC_MODEL AUTH_SECRET BUILD_NUMBER CERT_FILE CI
    CHECKPOINT_DIR CI_WORKSPACE CODESPACES COMMAND_MODE CONFIG_DIR CONFIG_FILE DEFAULT_MODEL
    DESKTOP_SESSION GITHUB_WORKSPACE HTTPS_PROXY IS_SANDBOX LANGSMITH_API_KEY LISTENER LISTEN_ADDR
    LISTEN_FDS LISTEN_PID MAX_TOKENS MODE MODEL_NAME MODELS_DIR MODULE NODE_AUTH_TOKEN OAUTH_TOKEN
    OLLAMA_MODELS OPENAI_API_KEY PROMPT_COMMAND RUNNER_WORKSPACE SESSION SESSION_ID SESSION_MANAGER
    SSL_CERT_FILE TEST_WORKSPACE TF_WORKSPACE WORKSPACE_TMP XDG_SESSION_ID X_AUTH_TOKEN
"""
"""Variables of desktops, CI services and other programs."""


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Not written yet; what it adds to the environment is gone after the test."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return tmp_path / ".env"


def test_what_is_wrong_is_said_at_start(
    env_file: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    for name in ("SANDBOX", "CONFIG_FOLDER"):
        os.environ.pop(name, None)
    environment, told = os.environ, {}
    for line in (
        *("WORKSPCE=/a", "MODLE=offline", '\nAUTH_TOKEN="short', "AUTH_TOKEN", "AUTH_TOKEN: short"),
        *("approval=auto", "TRUST_WORKSPACE=maybe", "COMMAND_MEMORY=lots", "MAX_STEPS=0"),
        *("MAX_COST=0", "MAX_COST=-1", "MAX_COST=null", "MAX_TURN_COST=5 apples"),
        *("CONTEXT_WINDOW=200k", "CONTEXT_WINDOW=100", "CACHE_TTL=2h", "APPROVALS=yolo"),
        *("MODELS=foo", "MODELS=ollama:qwen3,openai:", "CONFIG_FOLDER=/nowhere"),
        *("ALLOWED_ORIGINS=*", "ALLOWED_ORIGINS=http://a,http://a/", "ALLOWED_ORIGINS=ftp://a"),
        *("ALLOWED_ORIGINS=null", "ALLOWED_ORIGINS=http://", "LISTEN=0.0.0.0", "LISTEN=127.0.0.2"),
        *("LISTEN=::", "AUTH_TOKEN=short", f"AUTH_TOKEN=a:{TOKEN},b:short"),
        *("COMMAND_NETWORK=true\nSANDBOX=auto", "WORKSPACES_FROM=http://git.example/app"),
        "WORKSPACES_FROM=https://ann:short@git.example/app",
        "WORKSPACES_FROM=https://short@git.example/app",
        "WORKSPACES_FROM=http://short@git.example/app",
        "WORKSPACES_FROM=https://git.example/app,https://git.example/b?key=short",
        "WORKSPACES_FROM=git@git.example:app?key=short",
        "WORKSPACES_FROM=ssh://git:short@git.example/app",
        "WORKSPACES_FROM=https://a.example/app.git,git@b.example:team/App",
        "WORKSPACES_FROM=/srv/.app,/srv/main/",
    ):
        monkeypatch.setattr(os, "environ", environment.copy())
        env_file.write_text(f"{line}\n")
        with pytest.raises(ConfigurationError) as caught:
            load_settings(env_file)
        told[line] = str(caught.value)
        assert "short" not in told[line], "a secret"
    snapshot("settings.txt", told)


@pytest.mark.parametrize("name", ["WORKSPCE", "TRUST_WORSPACE", "COMAND_NETWORK", "CHECKPOINT"])
def test_a_misspelled_name_in_the_environment(env_file: Path, name: str) -> None:
    os.environ[name] = "x"
    with pytest.raises(ConfigurationError, match=f"^{name} in the environment is not a setting"):
        load_settings(env_file)


def test_variables_of_others_are_no_settings_and_keys_may_be_in_the_file(env_file: Path) -> None:
    names = ("OPENAI_API_KEY", "LANGSMITH_TRACING", "https_proxy", "JIRA_URL", "MY_TOOL_MODEL")
    env_file.write_text("".join(f"{name}=kept\n" for name in names))
    load_settings(env_file)
    assert [os.environ[name] for name in names] == ["kept"] * len(names)
    os.environ |= dict.fromkeys(OTHERS.split(), "x")
    load_settings(env_file)


def test_what_is_left_out_or_empty_has_its_default(env_file: Path) -> None:
    os.environ.pop("CONFIG_FOLDER", None)
    os.environ["ALLOWED_ORIGINS"] = ""
    settings = load_settings(env_file)
    assert settings.allowed_origins == (
        "https://smith.langchain.com",
        "http://localhost:3000",
        "http://127.0.0.1:3000",
    )
    assert settings.tokens == {}


def test_a_ceiling_is_dollars_or_tokens(env_file: Path) -> None:
    env_file.write_text("MAX_TURN_COST=2.50\nMAX_COST=500000 tokens\n")
    settings = load_settings(env_file)
    assert str(settings.max_turn_cost) == "2.50 US dollars"
    assert str(settings.max_cost) == "500,000 tokens"
    os.environ["MAX_COST"] = "20"
    assert str(load_settings(env_file).max_cost) == "20 US dollars"


def test_repositories_to_clone_and_whose_tokens_are(env_file: Path) -> None:
    sources = "git@git.example:a,ssh://git@git.example:22/b.git,https://git.example/c,/srv/d?e"
    env_file.write_text(f"WORKSPACES_FROM={sources}\n")
    assert load_settings(env_file).workspaces_from == tuple(sources.split(","))
    os.environ |= {"WORKSPACES_FROM": "/a/app,/b/app", "WORKSPACES_PER": "thread"}
    assert len(load_settings(env_file).workspaces_from) == 2, "each is in a folder of its own"
    os.environ |= {"LISTEN": "0.0.0.0", "AUTH_TOKEN": TOKEN}  # noqa: S104
    assert load_settings(env_file).tokens == {TOKEN: "owner"}
    os.environ["AUTH_TOKEN"] = f"alice:{TOKEN}, bob:{TOKEN}2"
    assert load_settings(env_file).tokens == {TOKEN: "alice", f"{TOKEN}2": "bob"}


FILE = Path("/config/prices.yaml")
TABLE = """
x:a: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}
openai:gpt-4o: {input: 0.1, output: 0.2, cache_read: 0, cache_write: 0.1}
"""
TAKEN = Tokens(answers=2, unknown=0, input=1000, output=10, cache_read=700, cache_write=200)
CLAUDE = "anthropic:claude-sonnet-4-5"


def find_cost(taken: dict[str, Tokens], folder: Path, cache_ttl: str = "5m") -> Decimal | None:
    settings = Settings.model_validate({"config_folder": folder, "cache_ttl": cache_ttl})
    return load_prices(settings).find_cost(taken)


def test_the_cost_is_exact(tmp_path: Path) -> None:
    """By the list, and by the user's file, which counts before it."""
    assert find_cost({CLAUDE: TAKEN}, tmp_path) == Decimal("0.00141")
    assert find_cost({CLAUDE: TAKEN}, tmp_path, "1h") == Decimal("0.00186")
    assert find_cost({"openai:gpt-4o": TAKEN}, tmp_path, "1h") == Decimal("0.001725")
    (tmp_path / "prices.yaml").write_text(TABLE)
    plain = Tokens(answers=1, unknown=0, input=1000, output=10, cache_read=0, cache_write=0)
    all_three = {CLAUDE: TAKEN, "x:a": TAKEN, "openai:gpt-4o": plain}
    assert find_cost(all_three, tmp_path) == 2 * Decimal("0.00141") + Decimal("0.000102")


@rows(
    "taken",
    *({}, {"openai:qwen3": TAKEN}, {"ollama:qwen3": TAKEN}, {CLAUDE: TAKEN, "offline": TAKEN}),
    *({CLAUDE: {**TAKEN, "unknown": 1}}, {CLAUDE: {**TAKEN, "cache_read": 1001}}),
    {"openai:text-embedding-3-large": TAKEN},
    ids=["nothing", "name", "own", "one of two", "not counted", "odd", "only input has a price"],
)
def test_what_is_not_known_has_no_cost(taken: dict[str, Tokens], tmp_path: Path) -> None:
    assert find_cost(taken, tmp_path) is None


@pytest.mark.parametrize(
    ("name", "tokens", "is_known"),
    [("openai:gpt-5.4", 272_000, True), ("openai:gpt-5.4", 272_001, False), (CLAUDE, 10**6, True)],
    ids=["short", "long", "longer than its window, so that it was several"],
)
def test_a_price_that_depends_on_the_length_of_a_request(
    name: str, tokens: int, tmp_path: Path, *, is_known: bool
) -> None:
    cost = find_cost({name: {**TAKEN, "input": tokens}}, tmp_path)
    assert (cost is not None) is is_known


def test_a_server_at_another_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It may call any model so."""
    for address, name, is_known in (
        ("http://127.0.0.1:8080/v1", "openai:gpt-4o", False),
        ("https://models.example/v1", "openai:gpt-4o", False),
        ("https://api.openai.com/v1", "openai:gpt-4o", True),
        ("https://openrouter.ai/api/v1", "openai:openai/gpt-4o", True),
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        assert (find_cost({name: TAKEN}, tmp_path) is not None) is is_known, address
        assert (find_listed_window(name) is not None) is is_known, address


def test_a_bad_table(snapshot: Snapshot) -> None:
    told = {}
    for text in (
        *("m: {input: $3}", "m: {input: -1}", "m: {input: nan}", "m: {inptu: 1}"),
        *("m:\n    input: 1", "m:\nm:", "currency: EUR\nmodels: {}", "just text", "m: ["),
    ):
        with pytest.raises(UserError) as caught:
            parse_prices(text, FILE)
        told[text] = str(caught.value)
    snapshot("prices.txt", told)
