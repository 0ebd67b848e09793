"""What models cost: exact sums, no price that nobody gave, and what is wrong with a user's file."""

from decimal import Decimal
from pathlib import Path

import pytest

from modeshift.configuration.prices import load_prices, parse_prices
from modeshift.configuration.settings import Settings
from modeshift.models.usage import Tokens, find_listed_window
from modeshift.modes.errors import UserError
from modeshift.testing.plugin import Snapshot

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


@pytest.mark.parametrize(
    "taken",
    [
        {},
        {"openai:qwen3": TAKEN},
        {"ollama:qwen3": TAKEN},
        {CLAUDE: TAKEN, "offline": TAKEN},
        {CLAUDE: {**TAKEN, "unknown": 1}},
        {CLAUDE: {**TAKEN, "cache_read": 1001}},
        {"openai:text-embedding-3-large": TAKEN},
    ],
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
