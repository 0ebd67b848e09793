"""The table of prices: exact sums, no price that nobody gave, and errors that name the line."""

from decimal import Decimal
from pathlib import Path

import pytest

from graph.configuration.prices import load_prices, parse_prices
from graph.models.usage import Tokens
from graph.settings import ROOT, Settings
from modes.errors import UserError

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
        ("currency: U\nmodels:\n  m: {input: $3}", "line 3: models.m.input '$3': Input should be"),
        ("currency: U\nmodels:\n  m: {input: -1}", "line 3: models.m.input '-1': Input should be"),
        ("currency: U\nmodels:\n  m: {input: nan}", "line 3: models.m.input 'nan': Input should"),
        ("currency: U\nmodels:\n  m: {input: {}}", "line 3: models.m.input: "),
        ("currency: U\nmodels:\n  m: {inptu: 1}", "line 3: models.m.inptu '1': Extra inputs"),
        ("currency: U\nmodels:\n\n  m:\n    input: 1", "line 4: models.m.output: Field required"),
        ("currency: U\nmodels:\n  m:\n  m:", "the key 'm' is there twice, again in line 4"),
        ("currency: U\nmodels: [m]", "line 2: models: Input should be a valid dictionary"),
        ("currency: U\nmodels:\n  m: 3", "line 3: models.m '3': Input should be"),
        ("currency: [U]", "line 1: currency: Input should be a valid string"),
        (TABLE.replace("EUR", ""), "line 2: currency '': "),
        (TABLE.replace("currency: EUR", ""), "line 1: currency: Field required"),
        ("currency: U\nprices: {}", "line 2: prices: Extra inputs are not permitted"),
        ('{\n\t"currency": "U",\n\t"models": {"m": 1}}', "line 3: models.m '1': "),
        ("", "line 1: table: Input should be"),
        ("just text", "line 1: table 'just text': Input should be"),
        ("currency: [", "neither YAML nor JSON: while parsing "),
    ],
)
def test_a_bad_table(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_prices(text, FILE)
    assert str(caught.value).startswith(f"{FILE}: {says}")
    if says.startswith("line"):
        assert "; give currency: USD, or another one, and under models: a" in str(caught.value)


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
