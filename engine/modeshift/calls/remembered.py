"""``remember``: a person's "always allow this", for one tool and a pattern or one call.

Each applies in the thread, mode and workspace in which it was given, until the mode's definition
or the user's rules change, or a person takes it back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import cast
from weakref import WeakKeyDictionary

from langgraph.types import Overwrite

from modeshift.modes.errors import InvalidInputError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import Mailbox, StateValues
from modeshift.threads.state import Remembered, State, Update

ALL = "all"
_putting = WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]()


def remember(
    deps: AgentDeps, mode_slug: str, tool: str, pattern: str, *, exact: bool
) -> Remembered:
    """The record of an approval, from now on."""
    digest = deps.seat(mode_slug).environment
    return Remembered(
        id=sha256(f"{digest}\0{tool}\0{exact}\0{pattern}".encode()).hexdigest()[:12],
        mode=mode_slug,
        tool=tool,
        pattern=pattern,
        exact=exact,
        digest=digest,
        when=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def list_remembered(state: StateValues, host_changes: StateValues) -> list[Remembered]:
    """The approvals remembered in the thread, and in conversations that wait for a sub-task.

    Without those that are to be forgotten, by the state or by what the host has set since.
    """
    ids = [*state.get("forget", ()), *host_changes.get("forget", ())]
    kept = {each["id"]: each for each in _drop(_list_all(state), ids)}
    return list(kept.values())


def find_new(state: StateValues, update: StateValues) -> list[Remembered]:
    """What the update remembers and the state does not."""
    known = {each["id"] for each in _list_all(state)}
    return [each for each in update.get("remembered") or () if each["id"] not in known]


def describe_remembered(deps: AgentDeps, remembered: Remembered) -> str:
    """What runs unasked, on one line: the tool, the call or the pattern, and the mode."""
    slug, pattern = remembered["mode"], to_one_line(remembered["pattern"])
    what = f"exactly {pattern!r}" if remembered["exact"] else f"what matches {pattern!r}"
    return f"{remembered['tool']}, {what}, in {deps.catalog.get_name(slug)} mode"


async def put_settings(
    mailbox: Mailbox,
    thread: str,
    settings: JsonObject,
    read: Callable[[], Awaitable[tuple[StateValues, StateValues]]],
) -> None:
    """Keep what the host sets; ``read`` gives the state, and the settings that it does not have.

    Ids that were to be forgotten before are kept, unless they were approved again: a fork of an
    older checkpoint still has them. Raises ``UserError`` for ids that nothing has.
    """
    # One after the other: of two that forget at once, the second would replace the first.
    async with _putting.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        if (ids := settings.get("forget")) is not None:
            known = [each["id"] for each in list_remembered(*await read())]
            if unknown := [id for id in ids if id not in (ALL, *known)]:
                raise InvalidInputError(
                    f"this thread remembers no approval {unknown[0]!r}; it remembers: "
                    f"{', '.join(known) or 'none'}"
                )
            before = await mailbox.find(thread, "forget") or ()
            gone = [id for id in before if id not in known]
            settings["forget"] = list(dict.fromkeys([*gone, *(known if ALL in ids else ids)]))
        await mailbox.put(thread, settings)


def forget(state: State, ids: Collection[str]) -> Update:
    """The update that forgets approvals, also in conversations that wait for a sub-task."""
    update: Update = {"remembered": _drop(state.get("remembered", ()), ids), "forget": []}
    if ids and (parents := state.get("parents")):
        update["parents"] = Overwrite(
            [{**each, "remembered": _drop(each["remembered"], ids)} for each in parents]
        )
    return update


def revoke_invalid(
    deps: AgentDeps, state: State, remembered: Sequence[Remembered]
) -> tuple[list[Remembered], list[str]]:
    """The approvals that still apply; and notices of the others, and of unknown ids."""
    known = {each["id"] for each in _list_all(state)}
    notices = [
        f"no approval {id!r} is remembered in this thread, so none was revoked"
        for id in state.get("forget", ())
        if id != ALL and id not in known
    ]
    remaining = []
    for approval in remembered:
        slug = approval["mode"]
        if slug in deps.catalog and approval["digest"] == deps.seat(slug).environment:
            remaining.append(approval)
        else:
            notices.append(
                f"the approval for {approval['tool']} {approval['pattern']!r} in mode {slug!r} is "
                "revoked: the mode, your rules or the workspace have changed"
            )
    return remaining, notices


def _drop(remembered: Iterable[Remembered], ids: Collection[str]) -> list[Remembered]:
    return [each for each in remembered if ALL not in ids and each["id"] not in ids]


def _list_all(state: StateValues) -> Iterator[Remembered]:
    for conversation in (state, *state.get("parents", ())):
        yield from cast("list[Remembered]", conversation.get("remembered", []))
