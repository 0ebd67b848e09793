"""``Mailbox``: what the host sets in a thread, also while a run goes on, in LangGraph's store.

Each setting is an item of its own, so the last one wins key by key, whichever process sets it. It
has an id of its own, too: a thread has taken it in when its state has that id. So no clock and no
counter is needed, and a fork of an older checkpoint takes in what was set since.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from modeshift.modes.plain_data import JsonObject
from modeshift.storage.kept_threads import get_namespace

RIGHTS = ("mode", "limit", "approvals")
SETTINGS = (*RIGHTS, "forget")
"""What the host may set in a thread at any time."""
REVISION = "host_revision"
"""The key in the state for the settings that the thread has taken in."""
StateValues = Mapping[str, Any]
"""A thread's state, as LangGraph has it: a ``State``, or what a server gives."""
Revision = int | dict[str, str]
"""The ids by setting; in threads of version 0.1 a number, and ids are numbers up to it."""


async def read_host_changes(store: BaseStore | None, thread: str, state: StateValues) -> JsonObject:
    """What the host has set that the thread does not have yet; ``intake`` takes it in."""
    return await Mailbox(store).find_news(thread, state.get(REVISION, {}))


class Mailbox:
    """What the host has set, in all threads."""

    def __init__(self, store: BaseStore | None) -> None:
        """Without a store nothing can be set."""
        self._store = store

    @property
    def is_kept(self) -> bool:
        """Whether anything can be set."""
        return self._store is not None

    async def find(self, thread: str, name: str) -> Any:
        """What is set under the name; None if nothing is."""
        item = self._store and await self._store.aget(get_namespace(thread), name)
        return item and item.value["value"]

    async def put(self, thread: str, values: Mapping[str, object]) -> None:
        """Keep settings of a thread."""
        if self._store is None:
            raise RuntimeError("this agent has no store in which a thread's settings are kept")
        await self._store.abatch(
            PutOp(get_namespace(thread), name, {"value": value, "id": uuid4().hex})
            for name, value in values.items()
        )

    async def put_input(
        self, thread: str, values: Mapping[str, object], *, goes_on: bool = False
    ) -> bool:
        """Keep the rights in a run's input, and replace a mode that there is: it came later.

        A mode is kept in any case where the run ``goes_on`` with what is planned: it is past
        ``intake``. False without a store: the state alone has them.
        """
        kept = {key: value for key, value in values.items() if key != "mode"}
        if "mode" in values and (goes_on or "mode" in await self._read(thread)):
            kept["mode"] = values["mode"]
        if kept and self._store is not None:
            await self.put(thread, kept)
        return self._store is not None

    async def find_news(self, thread: str, taken: Revision) -> JsonObject:
        """The settings that the thread has not taken in, with their revision; empty if none."""
        items = await self._read(thread)
        ids = {name: item.value["id"] for name, item in items.items()}
        news = {
            name: item.value["value"]
            for name, item in items.items()
            if not _is_taken(taken, name, ids[name])
        }
        return {**news, REVISION: ids} if news else {}

    async def _read(self, thread: str) -> dict[str, Item]:
        if self._store is None:
            return {}
        reads = [GetOp(get_namespace(thread), name, refresh_ttl=False) for name in SETTINGS]
        items = await self._store.abatch(reads)
        return {
            name: item for name, item in zip(SETTINGS, items, strict=True) if isinstance(item, Item)
        }


def _is_taken(taken: Revision, name: str, id: str) -> bool:
    if isinstance(taken, dict):
        return taken.get(name) == id
    return id.isdecimal() and int(id) <= taken
