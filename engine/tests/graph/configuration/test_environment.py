"""Settings: what is wrong in the environment or in ``.env`` is an error that says what to do."""

import os
from pathlib import Path

import pytest

from modeshift.configuration.settings import load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.testing.plugin import Snapshot

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
        "WORKSPCE=/a",
        "MODLE=offline",
        '\nAUTH_TOKEN="short',
        "AUTH_TOKEN",
        "AUTH_TOKEN: short",
        "approval=auto",
        "TRUST_WORKSPACE=maybe",
        "COMMAND_MEMORY=lots",
        "MAX_STEPS=0",
        "CONTEXT_WINDOW=200k",
        "CONTEXT_WINDOW=100",
        "CACHE_TTL=2h",
        "APPROVALS=yolo",
        "MODELS=foo",
        "MODELS=ollama:qwen3,openai:",
        "CONFIG_FOLDER=/nowhere",
        "ALLOWED_ORIGINS=*",
        "ALLOWED_ORIGINS=http://a,http://a/",
        "ALLOWED_ORIGINS=ftp://a",
        "ALLOWED_ORIGINS=null",
        "ALLOWED_ORIGINS=http://",
        "LISTEN=0.0.0.0",
        "LISTEN=127.0.0.2",
        "LISTEN=::",
        "AUTH_TOKEN=short",
        f"AUTH_TOKEN=a:{TOKEN},b:short",
        "COMMAND_NETWORK=true\nSANDBOX=auto",
        "WORKSPACES_FROM=http://git.example/app",
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


def test_variables_of_other_programs_are_not_mistaken_for_settings(env_file: Path) -> None:
    os.environ |= dict.fromkeys(OTHERS.split(), "x")
    load_settings(env_file)


def test_keys_and_the_variables_of_own_tools_may_be_in_the_file(env_file: Path) -> None:
    names = ("OPENAI_API_KEY", "LANGSMITH_TRACING", "https_proxy", "JIRA_URL", "MY_TOOL_MODEL")
    env_file.write_text("".join(f"{name}=kept\n" for name in names))
    load_settings(env_file)
    assert [os.environ[name] for name in names] == ["kept"] * len(names)


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


def test_repositories_to_clone(env_file: Path) -> None:
    sources = "git@git.example:a,ssh://git@git.example:22/b.git,https://git.example/c,/srv/d?e"
    env_file.write_text(f"WORKSPACES_FROM={sources}\n")
    assert load_settings(env_file).workspaces_from == tuple(sources.split(","))
    os.environ |= {"WORKSPACES_FROM": "/a/app,/b/app", "WORKSPACES_PER": "thread"}
    assert len(load_settings(env_file).workspaces_from) == 2, "each is in a folder of its own"


def test_tokens_are_of_the_owner_or_of_those_named(env_file: Path) -> None:
    os.environ |= {"LISTEN": "0.0.0.0", "AUTH_TOKEN": TOKEN}  # noqa: S104
    assert load_settings(env_file).tokens == {TOKEN: "owner"}
    os.environ["AUTH_TOKEN"] = f"alice:{TOKEN}, bob:{TOKEN}2"
    assert load_settings(env_file).tokens == {TOKEN: "alice", f"{TOKEN}2": "bob"}
