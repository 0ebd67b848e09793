"""A process that continues a thread: it approves everything until the run ends.

Its one argument is JSON; it prints the names of what was asked.
"""

import asyncio
import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph.replay.cassette import Header, Recording, load_cassette
from tests.harness.cassette_writer import SCRIPTED, dump_cassette
from tests.harness.conversation import Conversation, make_agent
from tests.harness.recording import MODELS, listening, variables
from tests.harness.strict_player import StrictPlayer
from tests.provider.server import KEY


async def resumed(given: dict[str, Any]) -> list[str]:
    """The names of the calls that waited."""
    async with AsyncSqliteSaver.from_conn_string(given["database"]) as saver:
        agent = make_agent(Path(given["workspace"]), MODELS[given["provider"]], saver=saver)
        talk = Conversation(agent, is_streamed=given["streamed"])
        talk.config = {"configurable": {"thread_id": given["thread"]}}
        return await talk.approve_all()


def main(given: dict[str, Any]) -> None:
    """Play the part of the cassette that was handed over, all of it, or record one."""
    part = Path(given["part"])
    replaced = tuple((text, instead) for text, instead in given["replaced"])
    for variable, value in variables(given["provider"], KEY).items():
        os.environ.setdefault(variable, value)
    with ExitStack() as stack:
        if given["records"]:
            kept = stack.enter_context(listening(given["url"]))
        else:
            player = stack.enter_context(
                StrictPlayer.use(
                    recording=load_cassette(part), path=given["name"], replaced=replaced
                )
            )
            stack.callback(_tell, player)
        asked = asyncio.run(resumed(given))
    if given["records"]:
        header = Header(SCRIPTED, MODELS[given["provider"]], given["streamed"], "today")
        recording = Recording(header, tuple(kept.interactions(replaced)))
        part.write_text(dump_cassette(recording, "a part"), encoding="utf-8")
    else:
        assert not player.unplayed, player.unplayed
    sys.stdout.write(json.dumps(asked))


def _tell(player: StrictPlayer) -> None:
    """The cause, whatever came of it, and nothing else."""
    if player.refused:
        sys.exit(player.refused[0])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
