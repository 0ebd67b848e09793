"""A process that continues a thread: it approves everything until the run ends.

Its one argument is JSON; it prints the names of what was asked.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from vcr import VCR

from modeshift.testing.cassette_format import StrictReplay, configure, get_config
from tests.harness.conversation import Conversation, make_agent
from tests.harness.recording import MODELS, variables
from tests.provider.server import KEY


async def resumed(given: dict[str, Any]) -> list[str]:
    """The names of the calls that waited."""
    async with AsyncSqliteSaver.from_conn_string(given["database"]) as saver:
        agent = make_agent(Path(given["workspace"]), MODELS[given["provider"]], saver=saver)
        talk = Conversation(agent, is_streamed=given["streamed"])
        talk.config = {"configurable": {"thread_id": given["thread"]}}
        return await talk.approve_all()


def main(given: dict[str, Any]) -> None:
    """Play what is left of the cassette, all of it."""
    replaced = tuple((text, instead) for text, instead in given["replaced"])
    for variable, value in variables(given["provider"], KEY).items():
        os.environ.setdefault(variable, value)
    vcr, path = VCR(record_mode="none"), Path(given["cassette"])
    configure(vcr)
    with vcr.use_cassette(str(path), **get_config(replaced, "none", path)) as cassette:
        cassette.play_counts.update(range(given["played"]))
        replay = StrictReplay(cassette)
        try:
            asked = asyncio.run(resumed(given))
        finally:
            _tell(replay)
        assert not replay.unplayed
    sys.stdout.write(json.dumps(asked))


def _tell(replay: StrictReplay) -> None:
    """The cause, whatever came of it, and nothing else."""
    if replay.refused:
        sys.exit(replay.refused[0])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
