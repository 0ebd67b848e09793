"""The dev server's checkpointer and store: threads and approvals that outlive the process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base import id as checkpoint_ids
from langgraph.store.base import BaseStore

from modeshift.configuration.databases import make_private
from modeshift.configuration.settings import load_settings
from modeshift.modes.phases import Phase
from modeshift.server.logs import shorten_log
from modeshift.storage.database import Database
from modeshift.storage.threads import (
    list_questions,
    open_saver,
    open_store,
    prepare_tables,
    read_newest,
)
from modeshift.workarounds.langgraph_runtime import find_lists

CLONE = {"clone": str(uuid5(NAMESPACE_URL, Path.cwd().as_uri()))}
"""Stored with a run's checkpoints: clones share a database, but not the list of threads."""
settings = load_settings()
database = settings.open_database()
"""The database with this server's threads."""
_restoring = Lock()


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """What ``langgraph.json`` names; without it the server keeps threads in memory."""
    shorten_log(has_content=settings.log_format != "json")
    await _prepare()
    # Each event loop has a checkpointer, and no run has begun when the first one is made.
    if _restoring.acquire(blocking=False):
        await restore_lists(database)
    async with open_saver(database) as saver:
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    """What ``langgraph.json`` names; the server passes it to the nodes."""
    await _prepare()
    async with open_store(database) as opened:
        yield opened


def is_opened() -> bool:
    """Whether this server keeps its threads here; Aegra and LangGraph's platform have their own."""
    return _restoring.locked()


async def _prepare() -> None:
    if not settings.has_postgres:
        await asyncio.to_thread(make_private, settings.checkpoints)
    await prepare_tables(database)


async def owners_of(database: Database, thread_id: str) -> set[str | None]:
    """The users whose checkpoints the thread has, with None for a checkpoint of no known user.

    Empty for a new thread. The server's own list of threads may be lost; this is not.
    """
    # The server keeps the thread's metadata with a run's checkpoints, and with those of
    # update_state the name of the user.
    owner, user = (database.get_json("metadata", key) for key in ("owner", "user_id"))
    query = f"SELECT DISTINCT coalesce({owner}, {user}) FROM checkpoints WHERE thread_id = :thread"  # noqa: S608  # our names
    return {name for (name,) in await database.execute(query, thread=thread_id)}


async def read_questions() -> list[float]:
    """When each question was asked that waits for a person, in seconds since 1970."""
    # A checkpoint's id has its time, in ticks of 100 ns since October 1582.
    times = [checkpoint_ids.UUID(id).time for id in await list_questions(database)]
    return [ticks / 1e7 - 12_219_292_800 for ticks in times]


async def restore_lists(database: Database) -> None:
    """Have the server's lists of runs and threads agree with the checkpoints.

    The server writes both every ten seconds; after a crash it would run again whatever had not
    ended when it last wrote them.
    """
    if (lists := find_lists()) is None:
        return
    runs, threads = lists
    # Nobody knows whether a run without a thread of its own has begun.
    stateless = {run["thread_id"] for run in runs if run["kwargs"].get("temporary")}
    for records in (runs, threads):
        records[:] = [each for each in records if each["thread_id"] not in stateless]
    run_id = database.get_json("metadata", "run_id")
    query = f"SELECT DISTINCT {run_id} FROM checkpoints WHERE thread_id = :thread"  # noqa: S608  # our names
    for run in [run for run in runs if run["status"] == "pending"]:
        begun = {id for (id,) in await database.execute(query, thread=str(run["thread_id"]))}
        if str(run["run_id"]) in begun:
            run["status"] = "interrupted"
    waiting = {run["thread_id"] for run in runs if run["status"] == "pending"}
    threads += await _list_lost(database, {str(thread["thread_id"]) for thread in threads})
    for thread in threads:
        if thread["status"] != "error" and thread["thread_id"] not in waiting:
            values = await read_newest(database, str(thread["thread_id"]))
            is_idle = values.get("phase", Phase.IDLE) == Phase.IDLE
            thread["status"] = "idle" if is_idle else "interrupted"


async def _list_lost(database: Database, known: set[str]) -> list[dict[str, object]]:
    times = dict.fromkeys(("created_at", "updated_at", "state_updated_at"), datetime.now(UTC))
    query = f"""
        SELECT thread_id, CAST(metadata AS TEXT) FROM checkpoints
        WHERE checkpoint_ns = '' AND {database.get_json("metadata", "clone")} = :clone
        AND (thread_id, checkpoint_id) IN (
            SELECT thread_id, min(checkpoint_id) FROM checkpoints
            WHERE checkpoint_ns = '' GROUP BY thread_id)
    """  # noqa: S608  # our names
    lost = []
    for id, noted in await database.execute(query, clone=CLONE["clone"]):
        if id not in known:
            stored = json.loads(noted)
            metadata = {key: stored[key] for key in ("owner", "title", "graph_id") if key in stored}
            new = {"thread_id": UUID(id), "metadata": metadata, "status": "idle", "config": {}}
            lost.append({**new, **times, "values": None})
    return lost
