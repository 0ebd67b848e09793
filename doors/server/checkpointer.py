"""The dev server's checkpointer: threads and waiting approvals that outlive the process."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from doors.server.logs import shorten_log
from graph.configuration.environment import load_settings
from graph.configuration.user_files import make_private
from graph.settings import Settings


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncSqliteSaver]:
    """Named in ``langgraph.json``; without it the server keeps threads in memory."""
    shorten_log()
    settings = await asyncio.to_thread(_prepare)
    async with AsyncSqliteSaver.from_conn_string(str(settings.checkpoints)) as saver:
        await saver.setup()  # now, and not at the first run: owners_of looks before that
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
        found = database.execute(_NEWEST, (thread_id,)).fetchone()
    values = JsonPlusSerializer().loads_typed(found)["channel_values"] if found else {}
    return dict(values)


def _prepare() -> Settings:
    settings = load_settings()
    make_private(settings.checkpoints)
    return settings
