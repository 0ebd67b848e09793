"""The table of prices: exact sums, no price that nobody gave, and errors that name the line."""

from decimal import Decimal
from pathlib import Path

import pytest

from graph.configuration.prices import load_prices, parse_prices
from graph.models.usage import Tokens
from graph.settings import ROOT, Settings
from modes.errors import ConfigurationError

FILE = Path("/config/prices.yaml")
TABLE = """
currency: EUR
models:
  anthropic:a: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}
  openai:b: {input: 0.1, output: 0.2, cache_read: 0, cache_write: 0.1}
"""
TAKEN = Tokens(answers=2, unknown=0, input=1000, output=10, cache_read=700, cache_write=200)


def test_the_cost_is_exact() -> None:
    prices = parse_prices(TABLE, FILE)
    assert prices.currency == "EUR"
    assert prices.find_cost({"anthropic:a": TAKEN}) == Decimal("0.00141")
    plain = Tokens(answers=1, unknown=0, input=1000, output=10, cache_read=0, cache_write=0)
    both = {"anthropic:a": TAKEN, "openai:b": plain}
    assert prices.find_cost(both) == Decimal("0.00141") + Decimal("0.000102")


@pytest.mark.parametrize(
    "taken",
    [
        {},
        {"openai:other": TAKEN},
        {"anthropic:a": TAKEN, "offline": TAKEN},
        {"anthropic:a": {**TAKEN, "unknown": 1}},
    ],
    ids=["nothing", "no price", "no price for one", "not all counted"],
)
def test_what_is_not_known_has_no_cost(taken: dict[str, Tokens]) -> None:
    assert parse_prices(TABLE, FILE).find_cost(taken) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("currency: U\nmodels:\n  m: {input: $3}", "line 3: '$3': is no price; give that of a mil"),
        ("currency: U\nmodels:\n  m: {input: -1}", "line 3: '-1': is no price"),
        ("currency: U\nmodels:\n  m: {input: .nan}", "line 3: '.nan': is no price"),
        ("currency: U\nmodels:\n  m: {input: {}}", "line 3: 'this': is no price"),
        ("currency: U\nmodels:\n  m: {inptu: 1}", "line 3: 'inptu': there is no such price; they"),
        ("models:\n\n  m:\n    input: 1", "line 3: 'm': has no price for output, cache_read, "),
        ("currency: U\nmodels:\n  m:\n  m:", "line 3: 'm': has no price for input, "),
        ("currency: U\ncurrency: V", "line 2: 'currency': is there twice; remove one of them"),
        ("currency: U\nmodels: [m]", "line 2: 'this': give models, each with its prices: {inp"),
        ("currency: U\nmodels:\n  m: 3", "line 3: '3': give the prices of 'm': {input: "),
        ("currency: [U]", "line 1: 'currency': give currency: USD, or another one"),
        (f"\n\n{TABLE.replace('currency: EUR', '')}", "line 5: 'this': has no currency; add"),
        ("prices: {}", "line 1: 'prices': give currency: USD"),
        ("just text", "line 1: 'just text': give a mapping with the keys currency and models"),
        ("? [a]\n: b", "line 1: 'this': give a mapping"),
        ("currency: [", "is no YAML: while parsing "),
    ],
)
def test_a_bad_table(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_prices(text, FILE)
    assert str(caught.value).startswith(f"{FILE}: {says}")


def test_the_users_table_counts_instead_of_the_clones(tmp_path: Path) -> None:
    settings = Settings(config_folder=tmp_path)
    assert load_prices(settings).file == ROOT / "prices.yaml"
    assert load_prices(settings).models == {}, "no price is known here"
    (tmp_path / "prices.yaml").write_text(TABLE)
    assert list(load_prices(settings).models) == ["anthropic:a", "openai:b"]


def test_the_clones_example_is_a_table() -> None:
    lines = (ROOT / "prices.yaml").read_text().splitlines()
    example = [line.replace("  # ", "  ", 1) if line.startswith("  # ") else line for line in lines]
    assert len(parse_prices("\n".join(example), FILE).models) == 1
