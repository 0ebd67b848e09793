"""What ``test_recipe`` runs in its copy of the project: the agent with the recipe's tool.

Prints as JSON what happened.
"""

import asyncio
import json
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from doors.commands.modes import main as list_modes
from graph.agent import build_agent
from graph.configuration.loading import AgentLoader
from graph.models.loading import Models
from tests.harness.conversation import APPROVE, Conversation
from tests.harness.place import UserFolders
from tests.harness.scripted import ScriptedModel, calling

FETCHED: list[str] = []


class Site(BaseHTTPRequestHandler):
    """One page, and what was fetched."""

    def do_GET(self) -> None:
        FETCHED.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"the page")

    def log_message(self, format: str, *args: Any) -> None:
        pass


async def ask_for(loader: AgentLoader, mode: str, url: str) -> dict[str, Any]:
    """What comes of a call of fetch_url in the mode, approved if a person is asked."""
    model = ScriptedModel(answers=[calling(("fetch_url", {"url": url}))])
    deps = replace(loader.deps(), models=Models(model))
    talk = Conversation(build_agent(deps, InMemorySaver()))
    await talk.say("Look it up.", mode=mode)
    asked = await talk.waiting()
    before = len(FETCHED)
    if asked:
        await talk.decide({**APPROVE, "remember": True})
    (result,) = (await talk.results()).values()
    return {
        "notices": deps.notices,
        "bound": "fetch_url" in model.asked[0].tools,
        "asked": [(one["description"], one.get("remember")) for one in asked],
        "fetched unasked": before,
        "fetched": len(FETCHED),
        "result": result.text,
        "remembered": [one["pattern"] for one in (await talk.values()).get("remembered", [])],
    }


async def main(root: Path) -> None:
    """Four conversations, and the table of the modes."""
    root.mkdir()
    place = UserFolders(root)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"localhost:{server.server_port}"
    allowed, plain = place.loader(network_hosts=site), place.loader()
    found = {
        "site": site,
        "refused": await ask_for(plain, "research", f"http://{site}/page"),
        "ask": await ask_for(allowed, "ask", f"http://{site}/page"),
        "fetched": await ask_for(allowed, "research", f"http://{site}/page"),
        "modes": list(list_modes()),
    }
    server.shutdown()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
