"""What a call will do, before anybody is asked: as data for clients, as an error, as a refusal."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from modeshift.calls.previews import Preview, preview_call
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import Settings
from modeshift.models.loading import Models
from modeshift.modes.effects import EFFECTS, ServerTool, ToolSpec
from modeshift.threads.deps import AgentDeps
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import Toolbox
from tests.graph.calls import asks
from tests.harness.conversation import APPROVE, Conversation, open_thread
from tests.harness.place import UserFolders, modes_file
from tests.harness.scripted import ScriptedModel, calling
from tests.tables import rows


def make_deps(workspace: Path) -> AgentDeps:
    return AgentLoader(Settings(workspace=workspace, sandbox="off", _env_file=None)).deps()


def preview(deps: AgentDeps, name: str, mode: str = "code", **args: Any) -> Preview:
    shown = preview_call(deps, {"id": "1", "name": name, "args": args}, mode, ["plan.md"])
    assert shown is not None
    return shown


def test_an_edit_is_a_diff_and_the_whole_file(workspace: Path) -> None:
    deps = make_deps(workspace)
    (workspace / "a.txt").write_text("".join(f"{n}\n" for n in range(20)))
    edits = [{"old": "10\n", "new": "ten\u202e\n"}]
    change = preview(deps, "edit_file", path="a.txt", edits=edits)["change"]
    assert change["lines"] == [
        ("@", "line 8"),
        *((" ", line) for line in "789"),
        ("-", "10"),
        ("+", "ten\\u202e"),
        *((" ", line) for line in ("11", "12", "13")),
    ]
    assert change["before"] is not None
    assert change["after"] == change["before"].replace("10\n", "ten\\u202e\n")
    new = preview(deps, "write_file", path="new.txt", content="x")["change"]
    assert (new["before"], new["lines"]) == (None, [("@", "line 1"), ("+", "x")])
    path = "d/" * 200 + "a  b.txt"
    assert preview(deps, "write_file", path=path, content="")["change"]["path"] == path
    lost = preview(deps, "edit_file", path="a.txt", edits=[{"old": "no", "new": "x"}])["change"]
    assert "'no'" in lost["problem"]
    end = preview(deps, "write_file", path="a.txt", content="0")["change"]["lines"][-1]
    assert end == ("@", "no line break at the end")
    (workspace / "few.txt").write_text("a\nb\nb\na\na\n" * 400)
    many = preview(deps, "write_file", path="few.txt", content="b\na\na\nb\na\nb\n" * 3000)
    assert len(many["change"]["lines"]) > 18_000, "and not after minutes"


def test_what_no_diff_shows_and_a_call_that_leaves_the_machine(workspace: Path) -> None:
    """An MCP server's arguments are a JSON schema, and not a model of ours."""
    deps = make_deps(workspace)
    (workspace / "long.txt").write_text("x" * 400_000 + "y")
    edits = [{"old": "y", "new": "evil"}]
    assert preview(deps, "edit_file", path="long.txt", edits=edits)["shows"] == []
    shown = preview(deps, "write_file", path="new.txt", content="x")["shows"]
    assert {"path", "content"} <= {*shown}
    assert preview(deps, "execute_command", command="ls")["shows"] == ["command"]
    deps = make_deps(workspace)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    runnable = StructuredTool.from_function(
        func=lambda **_: "", name="mcp__docs__look", description="Looks.", args_schema=schema
    )
    served = ServerTool("docs", "look", host="x")
    spec = ToolSpec(runnable.name, EFFECTS["mcp"], "mcp", served=served)
    fetch = StructuredTool.from_function(func=fetch_page)
    page = ToolSpec("fetch_page", EFFECTS["network"], url="url")
    tools = [Tool(spec, runnable, "here"), Tool(page, fetch, "here")]
    deps = replace(deps, toolbox=Toolbox(deps.toolbox.workspace, tools))
    seen = preview(deps, runnable.name, a="x")
    assert (seen["server"], seen["host"], seen["arguments"]) == ("docs", "x", schema)
    seen = preview(deps, "fetch_page", url="https://EXAMPLE.org:8443/a?b=//evil.example")
    assert (seen["host"], "server" in seen) == ("example.org:8443", False)


def test_a_switch_has_its_tools_and_plans_and_a_command_its_line(workspace: Path) -> None:
    deps = make_deps(workspace)
    (workspace / "plan.md").write_text("# Plan")
    switch = preview(deps, "switch_mode", "ask", mode_slug="code", reason="x")["switch"]
    assert ("write_file" in switch["gained"], switch["lost"]) == (True, [])
    assert [(plan["path"], plan["after"]) for plan in switch["plans"]] == [("plan.md", "# Plan")]
    most = "At most, it then runs a command, not sandboxed; now it changes nothing."
    assert (switch["changes"], switch["condition"]) == ([most], "")
    assert (switch["risks"]["write_file"], switch["risks"]["execute_command"]) == ("middle", "high")
    args = {"mode_slug": "architect", "reason": "x"}
    call = {"id": "1", "name": "switch_mode", "args": args, "condition": "Met: a."}
    shown = preview_call(deps, call, "code")
    assert shown is not None
    change, _ = shown["switch"]["changes"]
    assert change.startswith("Files to edit: Markdown files only")
    assert shown["switch"]["condition"] == "Met: a."
    command = preview(deps, "execute_command", command="a\u202e")
    assert (command["command"], command["is_sandboxed"]) == ("a\\u202e", False)
    assert preview_call(deps, {"id": "1", "name": "no_tool", "args": {}}, "ask") is None


@pytest.mark.parametrize("edit", ["text", {"search": "a", "put": "b"}, {"old": 1, "new": "x"}])
def test_an_own_tool_may_edit_in_another_form(workspace: Path, edit: Any) -> None:
    def patch(path: str, edits: list[Any]) -> str:
        """Patch a file."""
        return f"{path} {edits}"

    deps = make_deps(workspace)
    (workspace / "a.txt").write_text("a")
    spec = ToolSpec("patch", EFFECTS["edit"], "edit", paths=("path",))
    tools = [Tool(spec, StructuredTool.from_function(func=patch), "here")]
    deps = replace(deps, toolbox=Toolbox(deps.toolbox.workspace, tools))
    args: Any = {"path": "a.txt", "edits": [edit]}
    shown = preview(deps, "patch", **args)
    assert ("change" in shown, shown["shows"]) == (False, [])


def fetch_page(url: str) -> str:
    """Fetch a page."""
    return url


Call = tuple[str, dict[str, Any]]


def edit(old: str, path: str = "a.txt") -> Call:
    return "edit_file", {"path": path, "edits": [{"old": old, "new": "new"}]}


WRITE: Call = ("write_file", {"path": "a.txt", "content": "zzz"})
RUN: Call = ("execute_command", {"command": "touch b"})


async def ask(place: UserFolders, *calls: Call, mode: str = "code", **host: Any) -> Conversation:
    model = ScriptedModel(answers=[calling(*calls)])
    talk = open_thread(replace(place.loader().deps(), models=Models(model)))
    await talk.say("go", mode=mode, **host)
    return talk


@rows(
    "calls asked failed",
    ([edit("zzz")], [], [True]),
    ([edit("zzz"), edit("old")], [1], [True, False]),
    ([edit("old"), edit("zzz")], [0, 1], [False, True]),
    ([WRITE, edit("zzz")], [0, 1], [False, False]),
    ([RUN, edit("zzz")], [0, 1], [False, True]),
    ([edit("zzz", "gone.txt")], [], [True]),
    ([edit("zzz", ".env")], [0], [True]),
    ([edit("zzz", "link")], [0], [True]),
    ids=[
        *("one", "beside one that fits", "behind one that fits", "behind its file"),
        *("behind a command", "no such file", "of a secret file, which the error would quote"),
        "of a link to one",
    ],
)
async def test_who_is_asked(
    place: UserFolders, calls: list[Call], asked: list[int], failed: list[bool]
) -> None:
    for name in ("a.txt", ".env"):
        (place.workspace / name).write_text("old")
    (place.workspace / "link").symlink_to(".env")
    talk = await ask(place, *calls)
    waiting = [request["id"] for request in await talk.waiting()]
    assert waiting == [f"call_{n}" for n in asked]
    if waiting:
        await talk.decide(*[APPROVE] * len(waiting))
    results = (await talk.results()).values()
    assert [result.status == "error" for result in results] == failed


@pytest.mark.parametrize("host", [{"mode": "mine"}, {"limit": "mine"}, {}], ids=repr)
async def test_a_file_that_asks_is_not_quoted(place: UserFolders, host: dict[str, str]) -> None:
    (place.workspace / "a.txt").write_text("old")
    rule = "    permissions: {read_file: {a.txt: ask}}\n"
    place.global_modes.write_text(modes_file("mine", groups="read, edit", rest=rule))
    talk = await ask(place, edit("zzz"), **host)
    assert await asks(talk) == ["edit_file"] * len(host)
