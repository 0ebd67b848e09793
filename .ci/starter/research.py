"""The recipe's tool at work: ``test_recipe`` runs these tests in its copy of the project."""

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from graph.agent import build as build_agent
from langgraph.checkpoint.memory import InMemorySaver
from repository import ROOT

from modeshift.commands.modes import main as list_modes
from modeshift.models.loading import Models
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


@pytest.fixture
def site() -> Iterator[str]:
    """A server's name; it is closed at the end."""
    FETCHED.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"localhost:{server.server_port}"
        server.shutdown()


async def ask_for(
    site: str, place: UserFolders, mode: str, **settings: Any
) -> tuple[Conversation, bool]:
    """A conversation in which the model has called fetch_url, and whether it was given the tool."""
    model = ScriptedModel(answers=[calling(("fetch_url", {"url": f"http://{site}/page"}))])
    deps = place.loader(modes_folder=ROOT / "modes", **settings).deps()
    assert not deps.notices
    talk = Conversation(build_agent(replace(deps, models=Models(model)), InMemorySaver()))
    await talk.say("Look it up.", mode=mode)
    return talk, "fetch_url" in model.asked[0].tools


async def read_result(talk: Conversation) -> str:
    (result,) = (await talk.results()).values()
    return str(result.text)


async def test_the_mode_fetches_once_a_person_has_approved(place: UserFolders, site: str) -> None:
    talk, is_bound = await ask_for(site, place, "research", network_hosts=site)
    assert is_bound
    (request,) = await talk.waiting()
    assert request["description"] == "Research mode wants to use fetch_url: reaches the network."
    assert FETCHED == []
    await talk.decide({**APPROVE, "remember": True})
    assert FETCHED == ["/page"]
    result = await read_result(talk)
    assert re.fullmatch(r"<data-(\w+) source=[^\n]+>\nthe page\n</data-\1>", result)
    assert f"fetch_url http://{site}/page" in result
    patterns = [memory["pattern"] for memory in (await talk.values())["remembered"]]
    assert patterns == [request["remember"]] == [f"http://{site}/*"]


def test_make_modes_shows_it(monkeypatch: pytest.MonkeyPatch, place: UserFolders) -> None:
    monkeypatch.setenv("MODES_FOLDER", str(ROOT / "modes"))
    monkeypatch.setenv("WORKSPACE", str(place.workspace))
    research, ask = ("\n".join(list_modes(mode)) for mode in ("research", "ask"))
    assert re.search(r"fetch_url +ask +reaches the network", research)
    assert "allow 'https://docs.python.org/*'" in research
    assert re.search(r"fetch_url +deny +no group 'web'", ask)
