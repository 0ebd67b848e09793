"""Channels of our own, and what a run's input may hold."""

from collections.abc import Callable, Sequence
from typing import Any

from langgraph.channels import EphemeralValue, LastValue
from typing_extensions import override

from graph.messages.from_client import accept_messages
from modes.catalog import Catalog
from modes.errors import InvalidInputError
from modes.machine import Phase
from modes.policy import Approvals


class Last(LastValue[Any]):
    """The last of the values written in one step.

    LangGraph's own takes one alone, and what two commands write while a question is open is all
    one step to it: the thread could never be read again.
    """

    @override
    def update(self, values: Sequence[Any]) -> bool:
        return super().update(values[-1:])


class CheckedInput(EphemeralValue[Any]):
    """A run's input, checked before the run's first checkpoint.

    A check in a node would come too late: by then the input has replaced the
    state, and an interrupt that was waiting is gone.
    """

    def __init__(self, typ: Any, check: Callable[[Any], Any]) -> None:
        super().__init__(typ)
        self.check = check

    @override
    def copy(self) -> "CheckedInput":
        new = CheckedInput(self.typ, self.check)
        new.key, new.value = self.key, self.value
        return new

    @override
    def from_checkpoint(self, checkpoint: Any) -> "CheckedInput":
        new = CheckedInput(self.typ, self.check)
        new.key, new.value = self.key, super().from_checkpoint(checkpoint).value
        return new

    @override
    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self.check(value) for value in values])


def build_mode_check(catalog: Catalog) -> Callable[[Any], str]:
    """A check that raises ``UnknownModeError`` for what is not in the catalog."""

    def check(slug: Any) -> str:
        return catalog[slug].slug

    return check


def check_approvals(value: Any) -> str:
    """Raises ``InvalidInputError`` for what is no policy."""
    try:
        return Approvals(value).value
    except ValueError:
        policies = ", ".join(Approvals)
        raise InvalidInputError(
            f"unknown approvals {value!r}; the policies are: {policies}"
        ) from None


def check_phase(value: Any) -> str:
    """Raises ``InvalidInputError`` for what is no phase."""
    try:
        return Phase(value).value
    except ValueError:
        raise InvalidInputError(f"unknown phase {value!r}") from None


def build_input_check(catalog: Catalog) -> Callable[[Any], dict[str, Any]]:
    """A check of a run's whole input."""
    checks: dict[str, Callable[[Any], Any]] = {
        "messages": accept_messages,
        "mode": build_mode_check(catalog),
        "approvals": check_approvals,
        "forget": _ids_check,
    }

    def check(given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise InvalidInputError(f"a run's input is a mapping, not {given!r}")
        if unknown := sorted(given.keys() - checks.keys(), key=str):
            raise InvalidInputError(
                f"unknown key {unknown[0]!r} in a run's input; the keys are: {', '.join(checks)}"
            )
        return {key: checks[key](value) for key, value in given.items() if value is not None}

    return check


def _ids_check(given: Any) -> list[str]:
    ids = [given] if isinstance(given, str) else given
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise InvalidInputError(f"forget {given!r} is no list of ids in 'remembered', nor 'all'")
    return ids
