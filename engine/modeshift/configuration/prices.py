"""``Prices``: what models cost, by the user's file or else by a public list."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from modeshift.configuration.last_loaded import read_user_file
from modeshift.configuration.settings import Settings
from modeshift.models.ceiling import Ceilings
from modeshift.models.service import CacheTTL
from modeshift.models.usage import Tokens, find_listed_cost
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.plain_data import parse_data
from modeshift.modes.plain_text import to_one_line

PRICES = "prices.yaml"
CURRENCY = "USD"
_HOW = (
    "give a line for each model, in US dollars per million tokens, such as "
    "openai:qwen3: {input: 1.00, output: 2.00, cache_read: 0.10, cache_write: 1.25}"
)
Amount = Annotated[Decimal, Field(ge=0, max_digits=15)]


class Price(BaseModel, frozen=True, extra="forbid"):
    """The prices of a million tokens."""

    input: Amount
    output: Amount
    cache_read: Amount
    cache_write: Amount


_TABLE = TypeAdapter(dict[str, Price])


@dataclass(frozen=True)
class Prices:
    """The prices of models, by the name that ``MODEL`` has for them."""

    file: Path
    own: Mapping[str, Price]
    """The prices in the user's ``file``."""
    cache_ttl: CacheTTL

    def find_cost(self, taken: Mapping[str, Tokens]) -> Decimal | None:
        """What the tokens cost, by model; None if one has no price, or took an unknown number."""
        total = Decimal()
        for name, tokens in taken.items():
            cost = None if tokens["unknown"] else self._find_cost(name, tokens)
            if cost is None:
                return None
            total += cost
        return total.normalize() if taken else None

    def _find_cost(self, name: str, taken: Tokens) -> Decimal | None:
        if (price := self.own.get(name)) is None:
            return find_listed_cost(name, taken, self.cache_ttl)
        plain = max(taken["input"] - taken["cache_read"] - taken["cache_write"], 0)
        cached = taken["cache_read"] * price.cache_read + taken["cache_write"] * price.cache_write
        return (plain * price.input + cached + taken["output"] * price.output).scaleb(-6)


def load_prices(settings: Settings) -> Prices:
    """The prices, with the user's file if there is one. Blocks; raises ``UserError``."""
    file = settings.config_folder / PRICES
    return Prices(file, parse_prices(read_user_file(file) or "", file), settings.cache_ttl)


def load_ceilings(settings: Settings) -> Ceilings | None:
    """What a turn and a thread may cost; None where nothing is set. As ``load_prices``."""
    turn, thread = settings.max_turn_cost, settings.max_cost
    if turn is None and thread is None:
        return None
    if all(ceiling is None or ceiling.in_tokens for ceiling in (turn, thread)):
        return Ceilings(turn, thread)
    return Ceilings(turn, thread, load_prices(settings).find_cost)


def parse_prices(text: str, file: Path) -> dict[str, Price]:
    """The table in ``text``; raises ``UserError`` with the file, the model and what to do."""
    try:
        return _TABLE.validate_python(parse_data(text, str(file)) or {})
    except ValidationError as error:
        # A key that is misspelled is missing too.
        problem = min(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
        value = f" {problem['input']!r}" if isinstance(problem["input"], str) else ""
        misfit = f"{'.'.join(map(str, problem['loc'])) or 'table'}{value}: {problem['msg']}"
        raise ConfigurationError(f"{file}: {to_one_line(misfit)}; {_HOW}") from error
