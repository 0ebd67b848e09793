"""What ``load.py`` compares with: an agent of LangChain's own parts, for LangGraph's dev server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from modeshift.models.offline import OfflineModel
from modeshift.project import use_root

use_root(Path.cwd())  # whose prompts the model has


@tool
def write_file(path: str, content: str) -> str:
    """Write a file in the workspace."""
    Path(os.environ["WORKSPACE"], path).write_text(content)
    return f"wrote {path}"


agent = create_agent(
    OfflineModel(),
    [write_file],
    system_prompt="You are a coding agent.",
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"write_file": True})],
)


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """LangGraph's own in SQLite, which outlives what ours does: a killed process."""
    async with AsyncSqliteSaver.from_conn_string(os.environ["CHECKPOINTS"]) as saver:
        await saver.setup()
        await saver.conn.execute("PRAGMA synchronous = NORMAL")
        yield saver
