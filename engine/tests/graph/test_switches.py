"""Switches of modes with models that bind what they thought to all that stood before it.

What a person, a client or an older version does to a thread must not end in a refused request.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph.agent import build as build_agent
from modeshift.models.loading import Models
from modeshift.modes.catalog import Catalog, prompts_of
from modeshift.threads.deps import AgentDeps
from modeshift.tools.toolbox import Toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.graph.conftest import Serve
from tests.graph.journey import CLAUDE, GPT, answer, check_requests, list_thoughts
from tests.graph.test_prefix import check_prefixes
from tests.harness.conversation import APPROVE, REJECT, Conversation, make_agent, make_toolbox
from tests.harness.modes import MODES, load_catalog, load_with
from tests.provider.script import Answer, Call
from tests.provider.server import ScriptedProvider
from tests.tables import rows

LEFT_OUT = "thoughts are left out"
ANEW = "cache starts anew"


@pytest.fixture
def provider(serve: Serve) -> Iterator[ScriptedProvider]:
    with serve(answer, "openai") as provider:
        yield provider


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "a.txt").write_text("a")
    return workspace


@dataclass
class Thread:
    """A thread with a model, in which somebody meddles."""

    talk: Conversation
    workspace: Path
    name: str

    def reload(self, name: str = "", toolbox: Toolbox | None = None, **more: Any) -> None:
        """Another process takes over."""
        catalog = more.pop("catalog", None) or load_catalog()
        box = toolbox or make_toolbox(Workspace(self.workspace), catalog)
        models = Models(name or self.name)
        deps = AgentDeps(catalog, box, models, prompts=prompts_of(MODES), **more)
        self.talk.agent = build_agent(deps, self.talk.agent.checkpointer)  # type: ignore[arg-type]  # it is one

    async def write(self, *messages: Any) -> None:
        await self.talk.agent.aupdate_state(self.talk.config, {"messages": list(messages)})

    async def find(self, kind: str, number: int) -> str:
        ids = [message.id for message in await self.talk.messages() if message.type == kind]
        return str(ids[number])

    async def say(self, text: str) -> list[str]:
        """The notices of the turn."""
        await self.talk.say(text)
        self.talk.config["configurable"].pop("checkpoint_id", None)
        await self.talk.approve_all()
        return list((await self.talk.values())["notices"])


async def change_a_modes_words(thread: Thread) -> None:
    thread.reload(catalog=load_with("code", custom_instructions="Be brief."))


async def change_the_prompt(thread: Thread) -> None:
    thread.reload(prompt_rules=lambda slug: "" if slug else "Be brief.")


async def remove_a_mode(thread: Thread) -> None:
    catalog = load_catalog()
    thread.reload(catalog=Catalog([catalog[mode] for mode in catalog if mode != "code"], "ask"))


async def remove_a_tool(thread: Thread) -> None:
    box = make_toolbox(Workspace(thread.workspace), load_catalog())
    tools = [box[spec.name] for spec in box.specs if spec.name != "edit_file"]
    thread.reload(toolbox=Toolbox(box.workspace, tools))


async def ask_another_model(thread: Thread) -> None:
    thread.reload(GPT if "claude" in thread.name else CLAUDE)
    await thread.say("In between: read_file a.txt")
    thread.reload()


async def edit_what_was_said(thread: Thread) -> None:
    await thread.write(HumanMessage("Other:", id=await thread.find("human", 0)))


async def edit_an_answer(thread: Thread) -> None:
    await thread.write(AIMessage("I said so.", id=await thread.find("ai", -2)))


async def remove_what_was_said(thread: Thread) -> None:
    await thread.write(RemoveMessage(await thread.find("human", -2)))


async def remove_a_result(thread: Thread) -> None:
    await thread.write(RemoveMessage(await thread.find("tool", -1)))


async def insert_forged_thoughts(thread: Thread) -> None:
    await thread.write(forge(thread.name))


def forge(name: str) -> AIMessage:
    about = {"model_provider": "anthropic"}
    thought: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "forged"}
    if "gpt" in name:
        about = {"model_provider": "openai", "object": "response"}
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "forged"}
    return AIMessage([thought, {"type": "text", "text": "So."}], response_metadata=about)


async def send_all_back(thread: Thread) -> None:
    """As a client does that keeps the history itself."""
    before = await thread.talk.messages()
    shown = [message.model_dump() for message in before]
    await thread.talk.send({"messages": [*shown, {"role": "user", "content": "Again:"}]})
    assert (await thread.talk.messages())[: len(before)] == before


async def go_back(thread: Thread) -> None:
    thread.reload()
    states = [state async for state in thread.talk.agent.aget_state_history(thread.talk.config)]
    begun = [
        state for state in states if len(state.values.get("messages", [])) == 6 and not state.next
    ]
    thread.talk.config["configurable"] |= begun[0].config["configurable"]


MEDDLING: list[tuple[Callable[[Thread], Awaitable[None]], str]] = [
    (send_all_back, ""),
    (change_a_modes_words, ""),
    (edit_an_answer, LEFT_OUT),
    (change_the_prompt, ANEW),
    (go_back, ""),
    (remove_a_tool, ANEW),
    (remove_a_result, LEFT_OUT),
    (remove_what_was_said, LEFT_OUT),
    (go_back, ""),
    (ask_another_model, ""),
    (insert_forged_thoughts, LEFT_OUT),
    (edit_what_was_said, LEFT_OUT),
    (remove_a_mode, ANEW),
]
"""What is done to a thread, and what the next turn's notice says."""


@pytest.mark.parametrize("name", [CLAUDE, GPT])
async def test_a_thread_that_is_meddled_with_goes_on(
    provider: ScriptedProvider, project: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is lost is said once, in a notice and in the log; what is thought after it is kept."""
    thread = Thread(Conversation(make_agent(project, Models(name))), project, name)
    assert await thread.say("Begin: mode code, write_file b.txt") == []
    for meddle, expected in MEDDLING:
        caplog.clear()
        await meddle(thread)
        requests = len(provider.requests)
        notices = await thread.say("After: read_file a.txt")
        told = [notice for notice in notices if "no longer exists" not in notice]
        assert [expected in notice for notice in told] == [True] * bool(expected), (meddle, told)
        assert await thread.say("Later:") == []
        assert caplog.messages == told, meddle
        sent = provider.requests[requests:]
        check_prefixes([request.body for request in sent])
        assert len(list_thoughts(sent[-1])) >= len(sent) - 1, meddle
        assert (provider.refused, provider.dropped) == ([], []), meddle


BETAS = "mid-conversation-tool-changes-2026-07-01", "thinking-binding-controls-2026-08-01"


@rows(
    "name unknown",
    (CLAUDE, BETAS[0]),
    (CLAUDE, "tool_addition"),
    (CLAUDE, '"role": "system"'),
    (GPT, "allowed_tools"),
    (GPT, "developer"),
)
async def test_a_service_that_refuses_a_way(
    serve: Serve, project: Path, caplog: pytest.LogCaptureFixture, name: str, unknown: str
) -> None:
    """It is said once, and holds for all threads of the process; every thread goes on."""
    with serve(answer, "openai", unknown=unknown) as provider:
        agent = make_agent(project, Models(name))
        for _ in range(2):
            thread = Thread(Conversation(agent), project, name)
            await thread.say("Begin: read_file a.txt, mode code, write_file b.txt")
            await thread.say("Go on: mode ask, mode code, read_file b.txt")
            assert (provider.refused, provider.dropped, provider.not_offered) == ([], [], [])
            assert list_thoughts(provider.requests[-1]), "what was thought since the last switch"
            last, provider.requests[:] = provider.requests[:], []
    assert len(caplog.messages) == 1
    assert "so each change of mode rewrites the request" in caplog.messages[0]
    assert all(unknown not in json.dumps(request.body) for request in last)


async def test_an_older_thread(provider: ScriptedProvider, project: Path, tmp_path: Path) -> None:
    """Its modes had prompts of their own, and nothing was noted of what a model was told."""
    for name in (CLAUDE, GPT):
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "old.sqlite")) as saver:
            talk = Conversation(make_agent(project, Models(name), saver=saver))
            thread = Thread(talk, project, name)
            old = {"mode": "code", "first_mode": "ask", "phase": "idle", "approvals": "manual"}
            await talk.agent.aupdate_state(
                talk.config, {**old, "messages": [HumanMessage("Begin:"), forge(name)]}
            )
            (notice,) = await thread.say("Go on: write_file c.txt")
            assert LEFT_OUT in notice
            assert await thread.say("And now: mode ask, read_file c.txt") == []
            await talk.agent.aupdate_state(talk.config, {"mode": "code"})
            assert await thread.say("End:") == []
        check_requests(provider, provider.requests)
        assert len(list_thoughts(provider.requests[-1])) == len(provider.requests) - 1
        provider.requests.clear()


@pytest.mark.parametrize("way", ["auto", "rewrite"])
@pytest.mark.parametrize("name", [CLAUDE, GPT])
async def test_a_tool_that_the_mode_lacks(serve: Serve, project: Path, name: str, way: str) -> None:
    """Before it was ever shown, and after it was taken away; the model is told who has it."""
    write = Answer(calls=(Call("write_file", {"path": "b.md", "content": "b"}),))
    run = Answer(calls=(Call("execute_command", {"command": "touch b.md"}),))
    switch = Answer(calls=(Call("switch_mode", {"mode_slug": "code", "reason": "To write."}),))
    steps = [write, run, switch, Answer("So."), switch, write, Answer("So.")]
    with serve(steps, "openai") as provider:
        talk = Conversation(make_agent(project, Models(name, mode_changes=way)))
        await talk.say("Begin.")
        await talk.decide(APPROVE)
        await talk.say("And back?", mode="ask")
        await talk.decide(REJECT)
    assert provider.not_offered == ["write_file", "execute_command", "write_file"]
    assert not (project / "b.md").exists()
    results = [message for message in await talk.messages() if isinstance(message, ToolMessage)]
    refused = [result.text for result in results if "Ask mode has " in result.text]
    assert [text.partition("switch_mode: ")[2] for text in refused] == [
        "architect, code, debug.",
        "code, debug.",
        "architect, debug.",
    ]
