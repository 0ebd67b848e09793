"""``load_prices``: what models cost, from the table that a user may edit; no price is built in."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graph.configuration.user_files import read_user_file
from graph.models.usage import Tokens
from graph.settings import ROOT, Settings
from modes.errors import ConfigurationError
from modes.files.bounded_yaml import parse_data
from modes.plain_text import to_one_line

PRICES = "prices.yaml"
_HOW = (
    "give currency: USD, or another one, and under models: a line for each, such as "
    "openai:gpt-5.6: {input: 1.00, output: 2.00, cache_read: 0.10, cache_write: 1.25}"
)
Amount = Annotated[Decimal, Field(ge=0, max_digits=15)]


class Price(BaseModel):
    """The prices of a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Amount
    output: Amount
    cache_read: Amount
    cache_write: Amount


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    currency: str = Field(min_length=1, max_length=20)
    models: dict[str, Price] = {}


@dataclass(frozen=True)
class Prices:
    """The prices of models, by the name that ``MODEL`` has for them."""

    file: Path
    currency: str
    models: Mapping[str, Price]

    def find_cost(self, taken: Mapping[str, Tokens]) -> Decimal | None:
        """What the tokens cost, by model; None if one has no price, or took an unknown number."""
        if not taken or any(one["unknown"] for one in taken.values()) or taken.keys() - self.models:
            return None
        costs = (_find_cost(one, self.models[name]) for name, one in taken.items())
        return sum(costs, Decimal()).normalize()


def _find_cost(taken: Tokens, price: Price) -> Decimal:
    plain = max(taken["input"] - taken["cache_read"] - taken["cache_write"], 0)
    cached = taken["cache_read"] * price.cache_read + taken["cache_write"] * price.cache_write
    return (plain * price.input + cached + taken["output"] * price.output).scaleb(-6)


def load_prices(settings: Settings) -> Prices:
    """The user's table if there is one, else the clone's. Blocks; raises ``UserError``."""
    for file in (settings.config_folder / PRICES, ROOT / PRICES):
        if (text := read_user_file(file)) is not None:
            return parse_prices(text, file)
    return Prices(ROOT / PRICES, "", {})


def parse_prices(text: str, file: Path) -> Prices:
    """The table in ``text``; raises ``UserError`` with file, line and what to do."""
    data = parse_data(text, str(file))
    if isinstance(data, dict) and not data.get("models"):
        data = {key: value for key, value in data.items() if key != "models"}
    try:
        table = _Table.model_validate(data)
    except ValidationError as error:
        # A key that is misspelled is missing too.
        problem = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        given = f" {problem['input']!r}" if isinstance(problem["input"], str) else ""
        why = problem["msg"].partition(" or instance of ")[0]
        what = f"{'.'.join(map(str, problem['loc'])) or 'table'}{given}: {why}"
        line = _find_line(text, problem["loc"])
        raise ConfigurationError(f"{file}: line {line}: {to_one_line(what)}; {_HOW}") from error
    return Prices(file, to_one_line(table.currency), table.models)


def _find_line(text: str, place: tuple[int | str, ...]) -> int:
    """The line of the value at ``place``, or of what would hold it."""
    line, node = 0, yaml.compose(text.expandtabs(), Loader=yaml.BaseLoader)
    for part in place:
        items = node.value if isinstance(node, yaml.MappingNode) else ()
        for key, value in items:
            if key.value == part:
                line, node = key.start_mark.line, value
    return line + 1
