"""``make bench``: seconds of a new process until an agent is imported and built."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

SCRIPTS = {
    "create_agent": """
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool

@tool
def read_file(path: str) -> str:
    "Read a file."
    return path

class Modes(AgentMiddleware):
    async def awrap_model_call(self, request, handler):
        return await handler(request)

asks = HumanInTheLoopMiddleware(interrupt_on={"read_file": True})
create_agent(FakeListChatModel(responses=[]), [read_file], middleware=[Modes(), asks])
""",
    "modeshift": """
import asyncio
from graph.agent import agent
from modeshift.configuration.loading import get_served
asyncio.run(get_served())
""",
}
"""The peer has one tool and one middleware; ours what the clone has."""


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds; 7 by default")
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "WORKSPACE": folder, "MODEL": "offline"}
        for _ in range(rounds + 1):  # the first round warms up
            for name, script in SCRIPTS.items():
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", script], check=True, env=environment)  # noqa: S603
                times[name].append(time.perf_counter() - start)
    print(f"{'import and build':24}{'s':>9}{'ratio':>7}")
    counted = {name: taken[1:] or taken for name, taken in times.items()}
    peer, *_ = counted.values()
    for name, taken in counted.items():
        ratio = statistics.median(a / b for a, b in zip(taken, peer, strict=True))
        print(f"  {name:22}{statistics.median(taken):>9.2f}{ratio:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
