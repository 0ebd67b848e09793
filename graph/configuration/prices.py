"""``load_prices``: what models cost, from the table that a user may edit; no price is built in."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import yaml

from graph.configuration.user_files import read_user_file
from graph.models.usage import Tokens
from graph.settings import ROOT, Settings
from modes.errors import ConfigurationError
from modes.plain_text import to_one_line

PRICES = "prices.yaml"
KINDS = ("input", "output", "cache_read", "cache_write")
_PRICE = re.compile(r"\d{1,9}(\.\d{1,9})?")
_EXAMPLE = "{input: 1.00, output: 2.00, cache_read: 0.10, cache_write: 1.25}"


@dataclass(frozen=True)
class Prices:
    """The prices of models, by the name that ``MODEL`` has for them."""

    file: Path
    currency: str
    models: Mapping[str, Mapping[str, Decimal]]
    """Of a million tokens, by ``KINDS``."""

    def find_cost(self, taken: Mapping[str, Tokens]) -> Decimal | None:
        """What the tokens cost, by model; None if one has no price, or took an unknown number."""
        if not taken or any(one["unknown"] for one in taken.values()) or taken.keys() - self.models:
            return None
        costs = (_find_cost(one, self.models[name]) for name, one in taken.items())
        return sum(costs, Decimal()).normalize()


def _find_cost(taken: Tokens, prices: Mapping[str, Decimal]) -> Decimal:
    plain = max(taken["input"] - taken["cache_read"] - taken["cache_write"], 0)
    return (
        plain * prices["input"]
        + taken["output"] * prices["output"]
        + taken["cache_read"] * prices["cache_read"]
        + taken["cache_write"] * prices["cache_write"]
    ).scaleb(-6)


def load_prices(settings: Settings) -> Prices:
    """The user's table if there is one, else the clone's. Blocks; raises ``UserError``."""
    for file in (settings.config_folder / PRICES, ROOT / PRICES):
        if (text := read_user_file(file)) is not None:
            return parse_prices(text, file)
    return Prices(ROOT / PRICES, "", {})


def parse_prices(text: str, file: Path) -> Prices:
    """The table in ``text``; raises ``ConfigurationError`` with file, line and what to do."""
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(f"{file}: is no YAML: {to_one_line(str(error))}") from error
    currency, models = "", {}
    for key, value in _read_items(root, file, "a mapping with the keys currency and models"):
        if key.value == "currency" and isinstance(value, yaml.ScalarNode) and value.value.strip():
            currency = to_one_line(value.value.strip(), 20)
        elif key.value == "models":
            models = dict(_read_models(value, file))
        else:
            _refuse(file, key, "give currency: USD, or another one, and models: with their prices")
    if root is not None and models and not currency:
        _refuse(file, root, "has no currency; add a line such as currency: USD")
    return Prices(file, currency, models)


def _read_models(node: yaml.Node, file: Path) -> Iterator[tuple[str, dict[str, Decimal]]]:
    for key, row in _read_items(node, file, f"models, each with its prices: {_EXAMPLE}"):
        prices = {}
        for kind, price in _read_items(row, file, f"the prices of {key.value!r}: {_EXAMPLE}"):
            if kind.value not in KINDS:
                _refuse(file, kind, f"there is no such price; they are: {', '.join(KINDS)}")
            if not isinstance(price, yaml.ScalarNode) or not _PRICE.fullmatch(price.value):
                _refuse(file, price, "is no price; give that of a million tokens, such as 2.50")
            prices[kind.value] = Decimal(price.value)
        if missing := [kind for kind in KINDS if kind not in prices]:
            _refuse(file, key, f"has no price for {', '.join(missing)}; add it")
        yield key.value, prices


def _read_items(
    node: yaml.Node | None, file: Path, wanted: str
) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    """The items of a mapping; none for an empty value."""
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value.strip()):
        return
    if not isinstance(node, yaml.MappingNode):
        _refuse(file, node, f"give {wanted}")
    seen = set[str]()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            _refuse(file, key, f"give {wanted}")
        if key.value in seen:
            _refuse(file, key, "is there twice; remove one of them")
        seen.add(key.value)
        yield key, value


def _refuse(file: Path, node: yaml.Node, why: str) -> NoReturn:
    value = node.value if isinstance(node, yaml.ScalarNode) else "this"
    raise ConfigurationError(f"{file}: line {node.start_mark.line + 1}: {value[:100]!r}: {why}")
