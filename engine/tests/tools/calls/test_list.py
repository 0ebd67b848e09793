"""The list of tools: what does not fit is refused, with the file's name and what to do."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from modeshift.modes.errors import ConfigurationError, InvalidCallError
from modeshift.testing.agent import script
from modeshift.testing.plugin import Snapshot
from modeshift.tools.tool import Tool, ToolDeps
from modeshift.tools.toolbox import Toolbox, build_toolbox, make_tools
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog
from tests.tables import rows
from tools import GROUPS, IN_EVERY_MODE, TOOLS

HERE = f"{__file__}: fetch_url"


def fetch_url(url: str, depth: int = 1) -> str:
    """Fetch a page."""
    return f"{url} {depth}"


def set_config(config: str) -> str:
    """Set it."""
    return config


def hide(text: str, _hidden: str) -> str:
    """Hide it."""
    return text


def add(first: str, *rest: str) -> str:
    """Add them."""
    return first + "".join(rest)


def read_all(where: list[str]) -> str:
    """Read files."""
    return str(where)


def read_one(where: Path) -> str:
    """Read a file."""
    return str(where)


UNCALLABLE: dict[str, Any] = {
    "config": set_config,
    "_hidden": hide,
    "*rest": add,
    "where: list": read_all,
    "where: Path": read_one,
}


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


def test_what_a_model_is_told_of_a_tool_is_short(workspace: Path) -> None:
    """Types, bounds and defaults that say something; no title, and no word on null."""

    class Page(BaseModel):
        """One page."""

        model_config = ConfigDict(extra="forbid")
        title: str
        size: int = 0

    def fetch(title: str, pages: list[Page] | None = None, depth: int | None = None) -> str:
        """Fetch pages."""
        return title

    tool = Tool.of(fetch, "read")
    items = {
        "description": "One page.",
        "properties": {"title": {"type": "string"}, "size": {"type": "integer"}},
        "required": ["title"],
        "type": "object",
    }
    assert tool.declared["parameters"] == {
        "properties": {
            "title": {"type": "string"},
            "pages": {"items": items, "type": "array"},
            "depth": {"type": "integer"},
        },
        "required": ["title"],
        "type": "object",
    }
    toolbox = Toolbox(Workspace(workspace), [tool])
    assert toolbox.validate(tool, {"title": "a", "depth": None})["depth"] is None
    with pytest.raises(InvalidCallError, match="more"):
        toolbox.validate(tool, {"title": "a", "pages": [{"title": "b", "more": 1}]})


def test_a_small_servers_grammar_takes_what_the_tools_declare(workspace: Path) -> None:
    """llama.cpp refuses a pattern that is not anchored; an enumeration leaves no other mode."""
    toolbox = build_toolbox(Workspace(workspace), load_catalog())
    declared = {spec.name: toolbox[spec.name].declared["parameters"] for spec in toolbox.specs}
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(declared))
    assert all(re.fullmatch(r"\^.*\$", json.loads(pattern)) for pattern in patterns)
    for name in ("switch_mode", "new_task"):
        slugs = declared[name]["properties"]["mode_slug"]["enum"]
        assert slugs == ["ask", "architect", "code", "debug"]
    for slug, words, problem in (("x", "y", "mode 'x'"), ("ask", " \n", "it is empty")):
        with pytest.raises(InvalidCallError, match=problem):
            toolbox.validate(toolbox["new_task"], {"mode_slug": slug, "message": words})


def test_a_tool_that_does_not_fit_its_function(snapshot: Snapshot) -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        *(("fetch", {}), ("nothing", {})),
        ("network", {"url": "link"}),
        ("command", {"command": "line"}),
        ("read", {"paths": ("url", "path")}),
        ("network", {"paths": ("url",)}),
        ("read", {"url": "url"}),
        ("outside-read", {"url": "url"}),
        ("outside", {"paths": ("url",)}),
        ("outside", {"subject": ("url", "amount")}),
        ("question", {"may_be_remembered": True}),
    ]
    told = {}
    for effect, rest in wrong:
        with pytest.raises(ConfigurationError) as refused:
            Tool.of(fetch_url, effect, **rest)
        told[f"{effect} {rest}"] = str(refused.value)
    for name, function in {"no docstring": lambda url: url, **UNCALLABLE}.items():
        with pytest.raises(ConfigurationError) as refused:
            Tool.of(function, "read", paths=("where",) if "where" in name else ())
        told[name] = str(refused.value)
    snapshot("tools.txt", told)


def test_langchains_own_config_is_no_argument_of_a_call() -> None:
    def look(text: str, config: RunnableConfig) -> str:
        """Look."""
        return text

    assert list(Tool.of(look, "read").declared["parameters"]["properties"]) == ["text"]


def leave() -> str:
    """Leave, as a library for command lines does where an argument is wrong."""
    raise SystemExit(2)


async def leave_at_once() -> str:
    """Leave, on the event loop."""
    return leave()


def leaving_tools(_: ToolDeps) -> list[Tool]:
    return [Tool.of(leave, "read"), Tool.of(leave_at_once, "read")]


async def test_a_tool_that_exits_ends_nothing_but_its_call(workspace: Path) -> None:
    tools = (*TOOLS, ("read", f"{__name__}:leaving_tools"))
    talk = script(workspace, [("leave", {}), ("leave_at_once", {})], "It left.", tools=tools)
    await talk.say("go")
    for result in (await talk.results()).values():
        assert (result.status, "SystemExit: 2" in result.text) == ("error", True), result.text


def pay() -> Iterator[str]:
    """Pay; nothing of it runs."""
    yield "paid"


async def pay_later() -> str:
    return "paid"


def pay_unawaited() -> object:
    """Pay, by a coroutine function."""
    return pay_later()


def pay_by_command() -> Command[str]:
    """Pay, and write the state."""
    return Command(update={"mode": "code"})


def pay_in_a_message() -> ToolMessage:
    """Pay, and answer another call."""
    return ToolMessage("paid", tool_call_id="another")


def list_paid() -> list[str]:
    """List what was paid."""
    return ["A-17 paid", "A-18 open"]


def paying_tools(_: ToolDeps) -> list[Tool]:
    paying = (pay, pay_unawaited, pay_by_command, pay_in_a_message)
    return [*(Tool.of(each, "outside") for each in paying), Tool.of(list_paid, "read")]


@rows(
    "name told",
    ("pay", "gave a generator instead of text"),
    ("pay_unawaited", "gave a coroutine instead of text"),
    ("pay_by_command", "gave a Command instead of text"),
    ("pay_in_a_message", "gave a ToolMessage instead of text"),
    ("list_paid", "A-17 paid\nA-18 open"),
)
async def test_what_a_tool_returns_is_text(name: str, told: str, workspace: Path) -> None:
    """A run ended with an AssertionError, and what had not run counted as a success."""
    tools = (*TOOLS, ("read", f"{__name__}:paying_tools"))
    talk = script(workspace, [(name, {})], "done", tools=tools)
    await talk.say("go")
    await talk.approve_all()
    (result,) = (await talk.results()).values()
    assert told in result.text
    assert result.status == ("success" if name == "list_paid" else "error")
    assert await talk.mode() == "ask"


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


def test_names_and_groups_of_tools(tmp_path: Path) -> None:
    listed = [(group, f"{__name__}:my_tools") for group in ("web", IN_EVERY_MODE)]
    workspace = Workspace(tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        Toolbox(workspace, make_tools(listed, ToolDeps(workspace)))
    here = HERE.partition(":")[0]
    assert str(refused.value) == (
        f"two tools are called 'fetch_url', in {here} and {here}; rename one of them"
    )
    specs = build_toolbox(Workspace(tmp_path), load_catalog()).specs
    assert {spec.group for spec in specs} == {group for group, _ in TOOLS}
    assert {"read", "edit", "command", "mcp"} <= set(GROUPS)


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
