"""What the state may hold: a check of what is written from outside, and of what is there."""

from collections.abc import Callable, Iterator
from typing import Any, cast, get_type_hints

from langgraph.types import Command
from pydantic import TypeAdapter, ValidationError

from graph.messages.from_client import check_history, check_kept
from graph.messages.input_channels import build_mode_check, check_approvals, check_phase
from graph.state import ModeChange, State
from modes.catalog import Catalog
from modes.errors import InvalidInputError
from modes.machine import Phase
from modes.policy import Approvals

Check = Callable[[Any], Any]


def _type_check(key: str, hint: Any) -> Check:
    adapter = TypeAdapter[Any](hint)

    def check(value: Any) -> None:
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, (key, *problem["loc"])))
            raise InvalidInputError(
                f"{key} {repr(value)[:200]} does not fit: {place}: {problem['msg']}"
            ) from error

    return check


_CHECKS: dict[str, Check] = {
    **{key: _type_check(key, hint) for key, hint in get_type_hints(State).items()},
    "approvals": check_approvals,
    "phase": check_phase,
    "messages": check_history,
}
_EMPTY: dict[str, Any] = {
    "approvals": Approvals.MANUAL.value,
    "phase": Phase.IDLE.value,
    "switch": None,
    "asked_under": "",
    "asked_of": {},
}
"""What stands for a value that does not fit, where that is no empty list."""
_IS_SET_ANEW = frozenset({"mode", "first_mode"})


def build_update_check(catalog: Catalog) -> Callable[[Any], None]:
    """A check of what a command or ``update_state`` writes, before any of it is saved."""
    is_mode = build_mode_check(catalog)
    checks = {**_CHECKS, "mode": is_mode, "first_mode": is_mode}

    def check(update: Any) -> None:
        for key, value in _writes(update):
            if key not in checks:
                raise InvalidInputError(
                    f"unknown key {key!r} in the state; the keys are: {', '.join(checks)}"
                )
            checks[key](value)

    return check


def _writes(update: Any) -> Iterator[tuple[Any, Any]]:
    """Keys and values, in each of the forms that LangGraph takes."""
    match update:
        case None:
            return
        case Command(update=inner):
            yield from _writes(inner)
        case dict():
            yield from update.items()
        case [str(key), value]:
            yield key, value
        case [inner, str() | None]:  # with the node that it is written as
            yield from _writes(inner)
        case [*parts]:
            for part in parts:
                yield from _writes(part)
        case _:
            raise InvalidInputError(f"an update of the state is a mapping, not {update!r}")


def drop_unsound(state: State) -> tuple[State, list[str]]:
    """The state as it can be gone on with, and the keys of what had to give way.

    An older version let in whatever was written.
    """
    kept: dict[str, Any] = {}
    lost = []
    for key, value in state.items():
        fitting = _fitting(key, value)
        if fitting is not value:
            lost.append(key)
        if fitting is not None or key not in _IS_SET_ANEW:
            kept[key] = fitting
    return cast("State", kept), lost


def _fitting(key: str, value: Any) -> Any:
    """``value`` itself where it fits."""
    if key == "messages":
        fitting = [message for message in value if _fits(check_kept, message)]
        return value if len(fitting) == len(value) else fitting
    if _fits(_CHECKS[key], value):
        return value
    if key == "mode_changes" and isinstance(value, list):
        return [record for record in value if _fits(_RECORD, record)]
    return None if key in _IS_SET_ANEW else _EMPTY.get(key, [])


_RECORD = _type_check("mode_changes", ModeChange)


def _fits(check: Check, value: Any) -> bool:
    try:
        check(value)
    except InvalidInputError:
        return False
    return True
