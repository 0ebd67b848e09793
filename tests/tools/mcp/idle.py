"""Prints what a process has of MCP servers that are configured, and that no mode has needed."""

import asyncio
import json
import sys
import threading
from typing import Any
from uuid import uuid4

import psutil

from graph.configuration.cache import AgentCache
from graph.configuration.environment import load_settings


async def main() -> None:
    settings = load_settings()
    found = AgentCache(settings).get(settings.workspace, settings.model)
    given: Any = {"messages": [("user", "hello")], "mode": "reader"}
    await found.agent.ainvoke(given, {"configurable": {"thread_id": str(uuid4())}})
    has = {
        "servers": len(found.deps.servers),
        "modules": [name for name in sys.modules if name.partition(".")[0] == "mcp"],
        "threads": [one.name for one in threading.enumerate() if one.name == "mcp"],
        "processes": len(psutil.Process().children()),
    }
    json.dump(has, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
