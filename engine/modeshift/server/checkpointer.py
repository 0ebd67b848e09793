"""The dev server's checkpointer: threads and waiting approvals that outlive the process."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from modeshift.graph.configuration.settings import Settings, load_settings
from modeshift.graph.configuration.user_files import WholeWrites, make_private
from modeshift.modes.phases import Phase
from modeshift.server.logs import shorten_log

CLONE = {"clone": str(uuid5(NAMESPACE_URL, Path.cwd().as_uri()))}
"""Kept with each run's checkpoints: clones share the file of those, and not the list of threads."""


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncSqliteSaver]:
    """Named in ``langgraph.json``; without it the server keeps threads in memory."""
    shorten_log()
    settings = await asyncio.to_thread(_prepare)
    async with WholeWrites.from_conn_string(str(settings.checkpoints)) as saver:
        await saver.setup()  # now, and not at the first run: owners_of looks before that
        await asyncio.to_thread(restore_lists, settings.checkpoints)
        yield saver


# The server keeps the thread's metadata with a run's checkpoints, and with those of update_state
# the name of the user.
_OWNERS = """
    SELECT DISTINCT coalesce(json_extract(noted, '$.owner'), json_extract(noted, '$.user_id'))
    FROM (SELECT CAST(metadata AS TEXT) AS noted FROM checkpoints WHERE thread_id = ?)
"""


def owners_of(checkpoints: Path, thread_id: str) -> set[str | None]:
    """The users whose checkpoints the thread has, with None for a checkpoint of no known user.

    Empty for a new thread. The server's own list of threads may be lost; this is not.
    """
    with closing(sqlite3.connect(f"{checkpoints.as_uri()}?mode=ro", uri=True)) as database:
        return {owner for (owner,) in database.execute(_OWNERS, (thread_id,))}


_NEWEST = """
    SELECT type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''
    ORDER BY checkpoint_id DESC LIMIT 1
"""


def read_values(checkpoints: Path, thread_id: str) -> dict[str, Any]:
    """What the newest checkpoint itself has: not the messages, for which all would be read."""
    with closing(sqlite3.connect(f"{checkpoints.as_uri()}?mode=ro", uri=True)) as database:
        return _read_values(database, thread_id)


def _read_values(database: sqlite3.Connection, thread_id: str) -> dict[str, Any]:
    found = database.execute(_NEWEST, (thread_id,)).fetchone()
    values = JsonPlusSerializer().loads_typed(found)["channel_values"] if found else {}
    return dict(values)


_RUNS = """
    SELECT json_extract(CAST(metadata AS TEXT), '$.run_id') FROM checkpoints WHERE thread_id = ?
"""
_BEGUN = """
    SELECT thread_id, CAST(metadata AS TEXT) AS noted FROM checkpoints
    WHERE checkpoint_ns = '' AND json_extract(noted, '$.clone') = ? AND (thread_id, checkpoint_id)
    IN (SELECT thread_id, min(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY 1)
"""


@cache  # each event loop has a checkpointer, and no run has begun when the first one is made
def restore_lists(checkpoints: Path) -> None:
    """Have the server's lists of runs and threads agree with the checkpoints.

    It writes both every ten seconds, and after a crash it would run again whatever had not ended
    then. They are LangGraph's own, ``langgraph_runtime_inmem.database``.
    """
    runtime: Any = sys.modules.get("langgraph_runtime_inmem.database")
    if runtime is None:
        return
    runs, threads = runtime.GLOBAL_STORE["runs"], runtime.GLOBAL_STORE["threads"]
    # Of a run without a thread of its own nobody knows whether it has begun.
    stateless = {run["thread_id"] for run in runs if run["kwargs"].get("temporary")}
    for kept in (runs, threads):
        kept[:] = [each for each in kept if each["thread_id"] not in stateless]
    with closing(sqlite3.connect(f"{checkpoints.as_uri()}?mode=ro", uri=True)) as database:
        for run in [run for run in runs if run["status"] == "pending"]:
            begun = {id for (id,) in database.execute(_RUNS, (str(run["thread_id"]),))}
            if str(run["run_id"]) in begun:
                run["status"] = "interrupted"
        waiting = {run["thread_id"] for run in runs if run["status"] == "pending"}
        threads += _list_lost(database, {str(thread["thread_id"]) for thread in threads})
        for thread in threads:
            if thread["status"] != "error" and thread["thread_id"] not in waiting:
                phase = _read_values(database, str(thread["thread_id"])).get("phase", Phase.IDLE)
                thread["status"] = "idle" if phase == Phase.IDLE else "interrupted"


def _list_lost(database: sqlite3.Connection, known: set[str]) -> Iterator[dict[str, Any]]:
    times = dict.fromkeys(("created_at", "updated_at", "state_updated_at"), datetime.now(UTC))
    for id, noted in database.execute(_BEGUN, (CLONE["clone"],)):
        if id not in known:
            given = json.loads(noted)
            metadata = {key: given[key] for key in ("owner", "title", "graph_id") if key in given}
            new = {"thread_id": UUID(id), "metadata": metadata, "status": "idle", "config": {}}
            yield {**new, **times, "values": None}


def _prepare() -> Settings:
    settings = load_settings()
    make_private(settings.checkpoints)
    return settings
