"""``Ceiling``: how much a thread, or a turn, may cost: in US dollars, or in tokens."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from modeshift.models.usage import Tokens
from modeshift.modes.errors import ConfigurationError

_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)( tokens)?")
FindCost = Callable[[Mapping[str, Tokens]], Decimal | None]


@dataclass(frozen=True)
class Ceiling:
    """An amount that is not zero."""

    amount: Decimal
    in_tokens: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """``2.50`` is in US dollars, ``500000 tokens`` are tokens. Raises ``ValueError``."""
        match = _AMOUNT.fullmatch(text.strip())
        if match is None or not (amount := Decimal(match[1])):
            raise ValueError(
                f"{text!r} is no amount: write 2.50 for US dollars, or '500000 tokens'"
            )
        return cls(amount, match[2] is not None)

    def measure(self, taken: Mapping[str, Tokens], find_cost: FindCost) -> Decimal:
        """How much of it that is. Raises ``ConfigurationError`` where a price is not known."""
        if not taken:
            return Decimal()
        if self.in_tokens:
            return Decimal(sum(each["input"] + each["output"] for each in taken.values()))
        if (cost := find_cost(taken)) is None:
            raise ConfigurationError(
                f"a ceiling of {self} needs a price for {', '.join(sorted(taken))}: give one in "
                "prices.yaml, or the ceiling in tokens, such as '500000 tokens'"
            )
        return cost

    def __str__(self) -> str:
        return f"{self.amount:,} tokens" if self.in_tokens else f"{self.amount} US dollars"
