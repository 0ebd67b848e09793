"""What a call will do, as data for clients."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from modeshift.calls.previews import Preview, preview_call
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import Settings
from modeshift.modes.effects import EFFECTS, ServerTool, ToolSpec
from modeshift.threads.deps import AgentDeps
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import Toolbox


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


def test_what_a_diff_cannot_show_is_left_to_the_arguments(workspace: Path) -> None:
    deps = make_deps(workspace)
    (workspace / "long.txt").write_text("x" * 400_000 + "y")
    edits = [{"old": "y", "new": "evil"}]
    assert preview(deps, "edit_file", path="long.txt", edits=edits)["shows"] == []
    shown = preview(deps, "write_file", path="new.txt", content="x")["shows"]
    assert {"path", "content"} <= {*shown}
    assert preview(deps, "execute_command", command="ls")["shows"] == ["command"]


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


def test_a_call_that_leaves_the_machine_names_server_and_host(workspace: Path) -> None:
    """An MCP server's arguments are a JSON schema, and not a model of ours."""
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
    shown = preview(deps, runnable.name, a="x")
    assert (shown["server"], shown["host"], shown["arguments"]) == ("docs", "x", schema)
    shown = preview(deps, "fetch_page", url="https://EXAMPLE.org:8443/a?b=//evil.example")
    assert (shown["host"], "server" in shown) == ("example.org:8443", False)


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
