"""The recipes of docs/own/loop.md, followed word for word in a copy of the project."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from loop_recipes import RECIPES
from repository import ROOT, copy_project, has_clone

from modeshift.commands.run import EXIT_CODES
from tests.clients.editor.editor import editing
from tests.harness import prefork
from tests.harness.clone import change
from tests.harness.conversation import APPROVE
from tests.harness.place import environment
from tests.harness.programs import run_in_clone
from tests.harness.server import Server, Thread

BLOCKS: list[tuple[str, str, str, str]] = re.findall(
    r"<!-- loop-recipe (\w+) (\S+) -->\n```(\w+)\n(.*?)```\n<!-- /loop-recipe -->",
    (ROOT / "docs/own/loop.md").read_text(encoding="utf-8"),
    re.DOTALL,
)
CHECKS = [
    ("ruff", "check", "--no-cache", "--ignore", "I001"),  # which asks what is the clone's own
    ("ruff", "format", "--check", "--no-cache"),
]
GREET = """
    async def greet(step: modeshift.Step) -> modeshift.Update:
        assert step.ask_person("greet", "May it begin?")
        return step.go("greeted")

    graph.add_node("greet", greet)
    return graph.c"""


def follow(recipe: str, clone: Path) -> int:
    """Do what the page says; gives the number of lines that it adds."""
    added = 0
    for name, file, kind, text in BLOCKS:
        if name == recipe:
            lines = text.splitlines()
            if kind == "diff":
                for hunk in text.split("@@\n"):
                    _apply(clone / file, hunk.splitlines())
                lines = [line for line in lines if line.startswith("+")]
            else:
                with (clone / file).open("a", encoding="utf-8") as module:
                    module.write(f"\n\n{text}")
            added += len(lines)
    return added


def _apply(file: Path, hunk: list[str]) -> None:
    """Line by line, as a reader does: another recipe's may stand between the hunk's."""
    above = ""
    added = [line[1:] for line in hunk if line.startswith("+")]
    for line in hunk:
        if line.startswith("+"):
            break
        above = line
    gone = [line[1:] for line in hunk if line.startswith("-")]
    assert above, f"{file.name}: a hunk begins with a line that is there"
    if gone:
        change(file, "".join(f"{line}\n" for line in gone), "".join(f"{one}\n" for one in added))
    else:
        change(file, f"{above[1:]}\n", "".join(f"{line}\n" for line in [above[1:], *added]))


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_works_and_is_short(recipe: str, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    copy_project(clone, wanted=has_clone)
    assert 0 < follow(recipe, clone) <= 15
    said = run_in_clone(clone, "loop_recipes", str(tmp_path), recipe, folder=".ci/starter")
    assert f"{recipe} works" in said
    for check in CHECKS:
        run_in_clone(clone, *check, "graph")


def test_the_page_has_these_recipes_and_they_touch_files_of_the_clone() -> None:
    assert {name for name, *_ in BLOCKS} == set(RECIPES)
    assert all(file.startswith("graph/") for _, file, *_ in BLOCKS)


@pytest.mark.slow
async def test_a_question_of_ones_own_is_asked_by_the_server(tmp_path: Path) -> None:
    """It stays open while rights are set beside the run, as the engine's own question does."""
    clone = tmp_path / "clone"
    copy_project(clone, wanted=has_clone)
    follow("sign_off", clone)
    (tmp_path / "place").mkdir()
    server = Server(tmp_path / "place")
    (server.folder / "graph").unlink()
    (server.folder / "graph").symlink_to(clone / "graph")
    server.workspace.mkdir(exist_ok=True)
    server.start(PYTHONPATH=str(server.folder))
    try:
        async with server.client as client:
            await _sign_off(server, await Thread.new(client))
    finally:
        server.kill()


async def _sign_off(server: Server, thread: Thread) -> None:
    await thread.say("write a.txt: 1", mode="code", approvals="auto")
    (request,) = await thread.waiting()
    assert request["name"] == "sign_off"
    async with httpx.AsyncClient(base_url=server.url) as http:
        for setting in ({"approvals": "manual"}, {"mode": "ask"}):
            shown = await http.patch(f"/threads/{thread.id}/mode", json=setting)
            assert shown.json()["is_pending"], shown.text
            assert await thread.waiting() == [request]
        question = (await http.get(f"/threads/{thread.id}/question")).json()
    assert (question["question"], question["previews"]) == (request["id"], [None])
    await thread.decide(APPROVE)
    values = await thread.values()
    assert (values["phase"], values["approvals"], values["mode"]) == ("idle", "manual", "ask")


def test_a_question_of_ones_own_ends_a_run_without_a_terminal_once_it_is_asked_again(
    tmp_path: Path,
) -> None:
    clone = tmp_path / "clone"
    copy_project(clone, wanted=has_clone)
    follow("sign_off", clone)
    rules = tmp_path / "rules.yaml"
    rules.write_text("- {mode: code, tool: write_file, pattern: '*'}")
    options = ("--message", "write a.txt: 1", "--mode", "code", "--max-cost", "20000 tokens")
    env = environment(tmp_path, MODEL="offline", MODES_FOLDER=str(clone / "modes"))
    ran = prefork.run("modeshift", "run", *options, "--rules", str(rules), cwd=clone, env=env)
    assert ran.stderr.count("Denied: sign_off") == 1, ran.stderr
    assert ran.stdout.startswith("Here is how it went:"), "the model was told, and answers"
    assert ran.stdout.count("offline model") == 1
    assert "denied; to go on with it: make chat THREAD=" in ran.stderr
    assert ran.returncode == EXIT_CODES["denied"]


@pytest.mark.slow
def test_a_question_before_the_model_answers_fails_no_check_of_the_server(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    copy_project(clone, wanted=has_clone)
    change(
        clone / "graph/chart.py",
        '("idle", "start", "thinking"),',
        '("idle", "start", "greeting"), ("greeting", "greeted", "thinking"),',
    )
    change(clone / "graph/chart.py", '"idle": None,', '"idle": None, "greeting": "greet",')
    change(clone / "graph/agent.py", "    return graph.c", GREET)
    options = ("-q", "-p", "no:cacheprovider", "-k", "server", "tests/test_graph.py")
    assert "1 passed" in run_in_clone(clone, "pytest", *options)


@pytest.mark.slow
async def test_a_question_of_ones_own_stays_open_in_an_editor(tmp_path: Path) -> None:
    """Its node takes in no mode: it would be asked again and again once one is chosen."""
    clone = tmp_path / "clone"
    copy_project(clone, wanted=has_clone)
    follow("sign_off", clone)
    (tmp_path / "workspace").mkdir()
    async with editing(tmp_path, clone=clone) as editor:
        talk = await editor.talk(tmp_path / "workspace", "code", approvals="auto")
        is_read = asyncio.Event()

        async def answer(*_: object) -> str:
            await is_read.wait()
            return "once"

        talk.answer = answer
        turn = await talk.begin("write a.txt: 1", lambda: talk.asked)
        await talk.choose("mode", "ask")
        is_read.set()
        assert await turn == "end_turn"
        assert [call.title for call in talk.asked] == ["sign_off"]
        assert talk.shown == ("ask", "auto")
        last = talk.of("tool_call_update")[-1]
        assert (last.tool_call_id, last.status) == (talk.asked[0].tool_call_id, "completed")
