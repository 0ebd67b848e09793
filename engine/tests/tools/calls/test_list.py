"""The list of tools: what does not fit is refused, with the file's name and what to do."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from modeshift.modes.errors import ConfigurationError, InvalidCallError
from modeshift.testing.snapshots import Snapshot
from modeshift.tools.tool import Tool, ToolDeps
from modeshift.tools.toolbox import Toolbox, build_toolbox, make_tools
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_test_catalog
from tools import GROUPS, IN_EVERY_MODE, TOOLS

HERE = "engine/tests/tools/calls/test_list.py: fetch_url"


def fetch_url(url: str, depth: int = 1) -> str:
    """Fetch a page."""
    return f"{url} {depth}"


def my_tools(_: ToolDeps) -> list[Tool]:
    return [Tool.of(fetch_url, "network", url="url")]


def test_a_function_that_is_defined_again_is_a_tool_of_its_own_types() -> None:
    def make(least: int) -> Tool:
        def count(number: Annotated[int, Field(ge=least)]) -> str:
            """Count."""
            return f"{number}, at least {least}"

        return Tool.of(count, "read")

    first, second = make(1).runnable, make(5).runnable
    assert first.invoke({"number": 3}) == "3, at least 1"
    assert second.invoke({"number": 7}) == "7, at least 5"
    with pytest.raises(ValidationError):
        second.invoke({"number": 3})


def test_a_tool_that_does_not_fit_its_function(snapshot: Snapshot) -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        *(("fetch", {}), ("nothing", {})),
        ("network", {"url": "link"}),
        ("command", {"command": "line"}),
        ("read", {"paths": ("url", "path")}),
        ("network", {"paths": ("url",)}),
        ("read", {"url": "url"}),
    ]
    told = {}
    for effect, rest in wrong:
        with pytest.raises(ConfigurationError) as refused:
            Tool.of(fetch_url, effect, **rest)
        told[f"{effect} {rest}"] = str(refused.value)
    with pytest.raises(ConfigurationError) as refused:
        Tool.of(lambda url: url, "read")
    told["no docstring"] = str(refused.value)
    snapshot("tools.txt", told)


def test_a_line_that_does_not_hold(tmp_path: Path, snapshot: Snapshot) -> None:
    lines = [
        ("web", name) for name in ("tools.wbe:web_tools", "tools.read:web_tools", "tools/web.py")
    ]
    told = {}
    for line in (*lines, *((group, f"{__name__}:my_tools") for group in ("Web", "", "browser"))):
        with pytest.raises(ConfigurationError) as refused:
            list(make_tools([line], ToolDeps(Workspace(tmp_path))))
        told[str(line)] = str(refused.value)
    snapshot("tool-lines.txt", told)


def test_two_tools_of_one_name(tmp_path: Path) -> None:
    listed = [(group, f"{__name__}:my_tools") for group in ("web", IN_EVERY_MODE)]
    workspace = Workspace(tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        Toolbox(workspace, make_tools(listed, ToolDeps(workspace)))
    here = HERE.partition(":")[0]
    assert str(refused.value) == (
        f"two tools are called 'fetch_url', in {here} and {here}; rename one of them"
    )


def check_call(toolbox: Toolbox, tool: Tool, args: dict[str, Any]) -> dict[str, Any]:
    """As a call is judged."""
    return asyncio.run(toolbox.check_call(tool.spec.name, args))[1]


@pytest.mark.parametrize("check", [Toolbox.validate, Toolbox.check, check_call])
def test_a_url_is_judged_and_fetched_in_one_spelling(tmp_path: Path, check: Any) -> None:
    (tool,) = my_tools(ToolDeps(Workspace(tmp_path)))
    toolbox = Toolbox(Workspace(tmp_path), [tool])
    checked = check(toolbox, tool, {"url": "HTTPS://Docs.python.org.:443/a/../b%2e"})
    assert checked == {"url": "https://docs.python.org/b.", "depth": 1}
    with pytest.raises(InvalidCallError, match="user name"):
        check(toolbox, tool, {"url": "https://docs.python.org@evil.example/"})


def test_the_group_of_a_tool_is_the_one_of_its_line(tmp_path: Path) -> None:
    specs = build_toolbox(Workspace(tmp_path), load_test_catalog()).specs
    assert {spec.group for spec in specs} == {group for group, _ in TOOLS}
    assert {"read", "edit", "command", "mcp"} <= set(GROUPS)
