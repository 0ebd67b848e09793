"""``Ceiling``: what a turn or a thread may cost, in US dollars or in tokens."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from modeshift.models.usage import Tokens, Usage
from modeshift.modes.errors import ConfigurationError

_AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)( tokens)?")
FindCost = Callable[[Mapping[str, Tokens]], Decimal | None]


@dataclass(frozen=True)
class Ceiling:
    """An amount, which is not zero, of US dollars or tokens."""

    amount: Decimal
    in_tokens: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``2.50`` as US dollars, ``500000 tokens`` as tokens. Raises ``ValueError``."""
        match = _AMOUNT.fullmatch(text.strip())
        if match is None or not (amount := Decimal(match[1])):
            raise ValueError(
                f"{text!r} is no amount: write 2.50 for US dollars, or '500000 tokens'"
            )
        return cls(amount, match[2] is not None)

    def measure(self, taken: Mapping[str, Tokens], find_cost: FindCost) -> Decimal:
        """What was taken, in this unit. Raises ``ConfigurationError`` if a price is unknown."""
        if not taken:
            return Decimal()
        if unknown := [name for name, each in sorted(taken.items()) if each["unknown"]]:
            raise ConfigurationError(
                f"a ceiling of {self} needs to know what each answer took, and the server of "
                f"{', '.join(unknown)} does not say; leave it out, or begin a thread with another "
                "model"
            )
        if self.in_tokens:
            return Decimal(sum(each["input"] + each["output"] for each in taken.values()))
        if (cost := find_cost(taken)) is None:
            raise ConfigurationError(
                f"a ceiling of {self} needs a price for {', '.join(sorted(taken))}: give one in "
                "prices.yaml, or the ceiling in tokens, such as '500000 tokens'"
            )
        return cost

    def show(self, amount: Decimal) -> str:
        """The amount with the ceiling's unit."""
        return f"{amount:,} tokens" if self.in_tokens else f"{amount} US dollars"

    def __str__(self) -> str:
        return self.show(self.amount)


@dataclass(frozen=True)
class Ceilings:
    """What a turn and a thread may cost before a person is asked."""

    turn: Ceiling | None = None
    thread: Ceiling | None = None
    find_cost: FindCost = lambda _: None

    def list_reached(self, usage: Usage) -> list[tuple[str, Ceiling, Decimal]]:
        """The ceilings that are reached, unless a person has allowed more. May block.

        Each with its scope, ``turn`` or ``thread``, before it, and what was spent behind it.
        Raises ``ConfigurationError`` where a price is not known.
        """
        found, allowed = list[tuple[str, Ceiling, Decimal]](), usage.get("allowed", {})
        both = ("turn", self.turn, usage.get("turn")), ("thread", self.thread, usage.get("thread"))
        for scope, ceiling, taken in both:
            if ceiling is not None:
                spent = ceiling.measure(taken or {}, self.find_cost)
                if spent >= Decimal(allowed.get(scope, ceiling.amount)):
                    found.append((scope, ceiling, spent))
        return found
