"""The dev server's checkpointer: threads and waiting approvals that outlive the process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph.private import make_private
from graph.settings import Settings, load_settings


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncSqliteSaver]:
    """What ``langgraph.json`` names; without it the server keeps threads in memory."""
    settings = await asyncio.to_thread(_prepare)
    async with AsyncSqliteSaver.from_conn_string(str(settings.checkpoints)) as saver:
        yield saver


def _prepare() -> Settings:
    settings = load_settings()
    make_private(settings.checkpoints)
    return settings
