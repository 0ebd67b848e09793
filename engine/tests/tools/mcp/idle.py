"""Prints what a process has of what nothing has needed: MCP servers, and a list of prices."""

import asyncio
import json
import sys
import threading
from typing import Any
from uuid import uuid4

import psutil

from modeshift.configuration.loading import get_served


async def main() -> None:
    served, *others = await asyncio.gather(*(get_served() for _ in range(8)))
    given: Any = {"messages": [("user", "hello")], "mode": "reader"}
    await served.agent.ainvoke(given, {"configurable": {"thread_id": str(uuid4())}})
    has = {
        "agents": len({served.agent, *(other.agent for other in others)}),
        "servers": len(served.deps.servers),
        "modules": sorted({"mcp", "genai_prices"} & sys.modules.keys()),
        "threads": [thread.name for thread in threading.enumerate() if thread.name == "mcp"],
        "processes": len(psutil.Process().children()),
    }
    json.dump(has, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
