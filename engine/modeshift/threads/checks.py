"""Checks of what is written into a thread from outside, and of what an older thread contains."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, cast, get_type_hints

from langgraph.channels import LastValue
from langgraph.graph import END, StateGraph
from langgraph.types import Command, Overwrite
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from modeshift.messages.normal_form import accept_messages, check_history, check_kept
from modeshift.models.usage import Usage
from modeshift.modes.errors import InvalidInputError, UnknownModeError, describe_misfit
from modeshift.modes.limits import find_unheld
from modeshift.modes.phases import Phase
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.policy import Approvals, is_offered
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import SETTINGS, StateValues
from modeshift.threads.state import ModeChange, State, build_input_type, get_depth, list_own_keys

Check = Callable[[Any], Any]
"""Gives the value as it is to be kept; raises ``UserError`` for one that does not fit."""


def _type_check(key: str, hint: Any, *, is_own: bool = False) -> Check:
    adapter = TypeAdapter[Any](hint)

    def check(value: object) -> object:
        try:
            return adapter.validate_python(value, strict=True)
        except ValidationError as error:
            if is_own:  # JSON has a list for a tuple, as checkpoints do, and a text for a date
                with suppress(ValueError):
                    return adapter.validate_json(to_json(value), strict=True)
            raise InvalidInputError(
                f"{key} {repr(value)[:200]} does not fit: {describe_misfit(error)}"
            ) from error

    return check


def _member_check(key: str, members: Sequence[str]) -> Check:
    def check(value: object) -> str:
        if isinstance(value, str) and value in members:
            return str(value)
        known = ", ".join(members)
        raise InvalidInputError(f"unknown {key} {value!r}; it is one of: {known}")

    return check


def _check_ids(value: object) -> list[str]:
    ids = [value] if isinstance(value, str) else value
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise InvalidInputError(
            f"forget must be 'all' or a list of ids in 'remembered', not {value!r}"
        )
    return ids


PHASES = tuple(map(str, Phase))
MARKED_AS_RESOLVED = (Command(goto=END), Command(goto=[END]))
"""A run's input from that button of Agent Chat UI: what waits is rejected, and the turn ends."""


@cache
def _list_checks(state: type, phases: tuple[str, ...]) -> dict[str, Check]:
    """The checks of a clone's state, by key."""
    own, channels = list_own_keys(state), StateGraph(state).channels
    hints = get_type_hints(state)
    # Null clears an own key, as in LangGraph; a reducer could not add it.
    hints |= {key: hints[key] | None for key in own if isinstance(channels[key], LastValue)}
    return {
        **{key: _type_check(key, hint, is_own=key in own) for key, hint in hints.items()},
        "approvals": _member_check("approvals", tuple(Approvals)),
        "phase": _member_check("phase", phases),
        "messages": check_history,
    }


_EMPTY: dict[str, object] = {
    "approvals": Approvals.MANUAL.value,
    "phase": Phase.IDLE.value,
    "switch": None,
    "asked": None,
    "usage": {},
    "facts": {},
    "fresh_from": None,
    "approved_plan": {"path": "", "digest": "", "text": "", "paths": ["/"]},  # names nothing
    "compact": False,
    "compact_from": 0,
    "host_revision": {},
    "limit": "",  # of which there is no mode, so it is the strictest one
    "end_subtask": False,
    "subtask": None,
    "workspace": "",
    "undo_from": "",
}
"""What replaces a value that does not fit, where that is no empty list."""
_SET_ANEW = ("mode", "first_mode")
_NEEDED: dict[str, str] = {
    Phase.THINKING: "messages",
    Phase.ACTING: "due_calls",
    Phase.SWITCHING: "switch",
    Phase.RETURNING: "parents",
}
"""What a thread must have in a phase, by the state's key."""
_OF_TURN = {"phase", "due_calls", "asked", "switch", "subtask", "parents"}
_check_change = _type_check("mode_changes", ModeChange)


def _build_checks(deps: AgentDeps) -> dict[str, Check]:
    """The checks of the state's keys, the clone's own too, among them which modes there are."""
    catalog = deps.catalog

    def check_mode(slug: object) -> str:
        if not isinstance(slug, str):
            raise UnknownModeError(slug, catalog)
        return catalog[slug].slug

    def check_limit(slug: object) -> str | None:
        if slug is None:
            return None
        limit = catalog[check_mode(slug)]
        offered = [tool for tool in deps.toolbox.specs if is_offered(limit, tool)]
        if problem := next((why for tool in offered if (why := find_unheld(limit, tool))), None):
            raise InvalidInputError(f"{problem}; limit the thread to a mode without it")
        return limit.slug

    return {
        **_list_checks(deps.state, deps.chart.phases),
        "mode": check_mode,
        "first_mode": check_mode,
        "limit": check_limit,
    }


def check_input(deps: AgentDeps, run_input: object) -> dict[str, object]:
    """A run's whole input, as it is to be kept; raises ``UserError``."""
    known = _build_checks(deps) | {"messages": accept_messages, "forget": _check_ids}
    checks = {key: known[key] for key in build_input_type(deps.state).__annotations__}
    if not isinstance(run_input, dict):
        raise InvalidInputError(f"a run's input is a mapping, not {run_input!r}")
    _check_keys(run_input, checks, "a run's input")
    # Of the engine's keys null changes nothing: clients send it for what they leave open.
    given = {*list_own_keys(deps.state), *(key for key in checks if run_input.get(key) is not None)}
    return {key: checks[key](value) for key, value in run_input.items() if key in given}


def check_settings(deps: AgentDeps, settings: Mapping[str, object]) -> JsonObject:
    """What the host sets in a thread; raises ``UserError``, also where a mode's key is missing."""
    known = _build_checks(deps) | {"forget": _check_ids}
    checks = {key: known[key] for key in SETTINGS}
    _check_keys(settings, checks, "the settings of a thread")
    checked = {key: checks[key](value) for key, value in settings.items()}
    if "mode" in checked and (problem := deps.models.problem(deps.catalog[checked["mode"]])):
        raise InvalidInputError(problem)
    return checked


def check_update(deps: AgentDeps, update: object) -> None:
    """Raises ``UserError`` for what no command or ``update_state`` may write."""
    checks = _build_checks(deps)
    for key, value in read_writes(update):
        _check_keys([key], checks, "the state")
        checks[key](value)
        inner = value if key == "parents" else [value or {}] if key == "switch" else ()
        written = {key, *(name for each in inner for name, part in each.items() if part)}
        for name in {"facts", "approved_plan"} & written:
            why = "code computes it from what happened"
            raise InvalidInputError(f"{name!r} is not taken: {why}")
        if key == "workspace":
            raise InvalidInputError("the workspace is chosen when the thread is made, and stays")
        if isinstance(update, Command) and key in _OF_TURN:
            raise InvalidInputError(
                f"{key!r} is not taken from a command: the state machine decides what is next"
            )


def check_turn(state: StateValues, writes: StateValues) -> None:
    """Raises ``InvalidInputError`` for a phase or sub-task that nothing in the thread goes with."""
    messages = [*state.get("messages", []), writes.get("messages")]
    after = {**state, **writes, "messages": messages}
    if writes.keys() & {"subtask", "parents"}:
        parents = [*state.get("parents", []), *writes.get("parents", [])]
        if get_depth(cast("State", after)) != len(parents):
            raise InvalidInputError(
                "'subtask' and 'parents' belong together; 'end_subtask' in a run's input ends one"
            )
    key = _NEEDED.get(str(after.get("phase")))
    if key is not None and writes.keys() & {"phase", key} and not any(after.get(key) or ()):
        raise InvalidInputError(f"phase {after['phase']!r} without a {key!r} in the state")


def _check_keys(keys: Iterable[object], known: Mapping[str, Check], what: str) -> None:
    if unknown := [key for key in keys if key not in known]:
        raise InvalidInputError(
            f"unknown key {unknown[0]!r} in {what}; the keys are: {', '.join(known)}"
        )


def read_writes(update: object) -> Iterator[tuple[Any, Any]]:
    """Keys and values, in each of the forms that LangGraph takes."""
    match update:
        case None:
            return
        case Command(goto=node) if node and update not in MARKED_AS_RESOLVED:
            raise InvalidInputError(
                f"goto={node!r} is not taken: the state machine decides which node runs next"
            )
        case Command(update=inner):
            yield from read_writes(inner)
        case dict():
            yield from update.items()
        case [str(key), value]:
            yield key, value
        case [inner, str() | None]:  # with the node that it is written as
            yield from read_writes(inner)
        case [*parts]:
            for part in parts:
                yield from read_writes(part)
        case _:
            raise InvalidInputError(f"an update of the state is a mapping, not {update!r}")


def drop_invalid(
    state: State, kind: type = State, phases: tuple[str, ...] = PHASES
) -> tuple[State, list[str]]:
    """The state without what does not fit, and the keys where that was so.

    Older versions saved such values, and a value of a type that has since changed is one too.
    """
    kept: dict[str, object] = {}
    dropped = []
    for key, value in state.items():
        if value is None and key in list_own_keys(kind):  # as if it were not there
            continue
        valid = _keep_valid(_list_checks(kind, phases), key, value)
        if valid is not value:
            dropped.append(key)
        if valid is value or (key not in _SET_ANEW and key not in list_own_keys(kind)):
            kept[key] = valid
    return cast("State", kept), dropped


def overwrite_dropped(
    state: State, dropped: Collection[str], changed: StateValues, kind: type
) -> dict[str, object]:
    """The update for ``dropped`` keys: the clone's own, and those whose channel only adds."""
    growing = {"mode_changes", "instructions", "parents", "subtasks"} & {*dropped}
    values: StateValues = state
    update: dict[str, object] = {
        key: Overwrite([*values.get(key, []), *changed.get(key, [])]) for key in growing
    }
    for key in list_own_keys(kind) & {*dropped}:
        channel = StateGraph(kind).channels[key]
        update[key] = Overwrite(channel.get()) if channel.is_available() else None
    return update | ({"usage": Overwrite(Usage())} if "usage" in dropped else {})


def _keep_valid(checks: Mapping[str, Check], key: str, value: Any) -> object:
    """What of ``value`` fits, or what replaces it; ``value`` itself where all of it fits."""
    if key == "messages":
        valid = [message for message in value if _fits(check_kept, message)]
        return value if len(valid) == len(value) else valid
    if _fits(checks[key], value):
        return value
    if key == "mode_changes" and isinstance(value, list):
        return [record for record in value if _fits(_check_change, record)]
    return _EMPTY.get(key, [])


def _fits(check: Check, value: object) -> bool:
    try:
        check(value)
    except InvalidInputError:
        return False
    return True
