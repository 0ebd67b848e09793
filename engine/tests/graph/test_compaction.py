"""A history that outgrows the model's window gives way to a summary, and the thread goes on."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from modeshift.messages.repair import remove_marks
from modeshift.models.loading import Models
from modeshift.modes.catalog import prompts_of
from modeshift.modes.errors import ConfigurationError, ProviderError
from modeshift.modes.policy import Approvals
from modeshift.prompts import render_summary_request
from modeshift.threads.deps import AgentDeps
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from modeshift.turns.compaction import HEADER, MIN_NEW, NO_SUMMARY
from tests.graph.conftest import Serve
from tests.harness.conversation import APPROVE, Conversation, cut_off, make_agent
from tests.harness.modes import MODES, load_catalog
from tests.harness.recording import MODELS
from tests.provider.script import Answer, Call, Failure, Step, call, say
from tests.provider.server import ScriptedProvider

WINDOW = 9_500
REQUEST = render_summary_request()
TEXT = "The user wants the file read again and again; it has words in it."
CLAUDE = MODELS["anthropic"]


class Worker:
    """Takes the steps one after the other, and answers requests for a summary in between."""

    def __init__(self, steps: Sequence[Step], *summaries: Step) -> None:
        self.left = list(steps)
        self.summaries = list(summaries) or [Answer(TEXT, thinking="What was it?")]
        self.asked: list[int] = []
        """How many steps were left at each request for a summary."""

    def __call__(self, history: Sequence[BaseMessage]) -> Step:
        if history[-1].text.endswith(REQUEST):
            self.asked.append(len(self.left))
            return self.summaries[min(len(self.asked), len(self.summaries)) - 1]
        return self.left.pop(0)


def read(thinking: str = "Again.") -> Answer:
    return Answer(calls=(Call("read_file", {"path": "long.txt"}),), thinking=thinking)


def is_summary(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and message.text.startswith(HEADER)


def bodies(provider: ScriptedProvider) -> list[str]:
    return [str(request.body) for request in provider.requests]


@pytest.fixture(autouse=True)
def long_file(workspace: Path) -> None:
    """About 1000 tokens."""
    (workspace / "long.txt").write_text(("word " * 80 + "\n") * 10)


def start(model: str, workspace: Path, window: int | None = WINDOW, **more: Any) -> Conversation:
    return Conversation(make_agent(workspace, Models(model, window), **more))


@pytest.mark.parametrize(("name", "is_streamed"), [("anthropic", False), ("chat", True)])
async def test_in_the_middle_of_a_long_turn(
    workspace: Path, serve: Serve, name: str, *, is_streamed: bool
) -> None:
    thinking = "" if name == "chat" else "Again."
    worker = Worker([*[read(thinking)] * 20, say("Done.")], Answer(TEXT, thinking=thinking))
    with serve(worker, name, window=WINDOW) as provider:
        agent = make_agent(workspace, Models(MODELS[name], WINDOW))
        talk = Conversation(agent, is_streamed=is_streamed)
        await talk.say("Read it twenty times.", mode="code")
        values = await talk.values()
    assert (provider.refused, provider.dropped, provider.too_long) == ([], [], [])
    assert (await talk.messages())[-1].text == "Done."
    assert 3 <= len(worker.asked) <= 20 / (MIN_NEW / 2)
    summaries = [n for n, body in enumerate(bodies(provider)) if REQUEST[:50] in body]
    assert len(summaries) == len(worker.asked)
    for number in summaries:  # asked through the cache; then the new history is in it
        tokens, *after = provider.inputs[number : number + 3]
        assert tokens.read > 0.8 * tokens.total > 0.6 * WINDOW
        assert after[0].total < 0.4 * WINDOW
        assert after[1].read > 0.5 * after[1].total
        body = bodies(provider)[number + 1]
        told = ("Read it twenty times.", TEXT, "You are in Code mode now.")
        assert all(body.count(text) == 1 for text in told), [body.count(text) for text in told]
    first, second, *_ = values["messages"]
    assert is_summary(first)
    assert second.text == "Read it twenty times."
    assert sum(map(is_summary, values["messages"])) == 1
    (taken,) = values["usage"]["thread"].values()
    is_counted = not (is_streamed and name == "chat")
    assert taken["answers" if is_counted else "unknown"] == len(provider.inputs)
    assert taken["input"] == is_counted * sum(tokens.total for tokens in provider.inputs)
    assert len(values["notices"]) == len(worker.asked)
    assert all("tokens instead of" in notice for notice in values["notices"])
    streamed = "".join(chunk.text for chunk in talk.chunks)
    assert streamed == ("Done." if is_streamed else "")
    assert await count_read(talk) == 20, "the checkpoints have it all"


async def count_read(talk: Conversation) -> int:
    """The calls in all checkpoints."""
    ids = set[str]()
    async for state in talk.agent.aget_state_history(talk.config):
        for message in state.values.get("messages", []):
            ids |= {str(call["id"]) for call in getattr(message, "tool_calls", [])}
    return len(ids)


async def test_what_holds_stays(workspace: Path, serve: Serve) -> None:
    """The mode, approvals, what is remembered, to do and written are not up to a summary."""
    todos = [{"content": "Read on", "status": "in_progress"}]
    switch = call("switch_mode", mode_slug="code", reason="To do it.")
    steps = [
        *(call("write_file", path="PLAN.md", content="Read."), switch),
        *(call("write_file", path="a.txt", content="a"), call("update_todo_list", todos=todos)),
        *[call("read_file", path="long.txt")] * 3,
        say("Done."),
        say("Hello."),
    ]
    with serve(Worker(steps), "anthropic"):
        talk = start(CLAUDE, workspace, 100_000)
        await talk.say("Plan, and do it.", mode="architect")
        for decision in (APPROVE, APPROVE, {"type": "approve", "remember": True}):
            await talk.decide(decision)
        before = await talk.values()
        await talk.say("Go on.", compact=True)
        after = await talk.values()
    names = ("mode", "approvals", "remembered", "mode_changes", "todos", "written", "first_mode")
    assert {name: after[name] for name in names} == {name: before[name] for name in names}
    assert after["remembered"]
    assert [message.text for message in after["messages"]] == [
        f"{HEADER}\n\n{TEXT}\n\n"
        "Files written in Architect mode: PLAN.md.\nFiles written in Code mode: a.txt.\n"
        "The plan that the user approved, PLAN.md:\n\nRead.",
        "Go on.",
        "Hello.",
    ]
    first, told = after["instructions"]
    assert (first["mode"], first["after"]) == ("architect", ""), "in no place any more"
    assert told["mode"] == "code"
    assert "- Read on (in_progress)" in told["text"]


@pytest.mark.parametrize("beside", ["nothing", "a message", "a mode"])
async def test_on_demand(workspace: Path, serve: Serve, beside: str) -> None:
    with serve(Worker([*[read()] * 3, say("Read."), say("Thanks.")]), "anthropic"):
        talk = start(CLAUDE, workspace, None)
        await talk.say("Read it.", mode="code")
        whole = await talk.messages()
        talk.nodes.clear()
        host: dict[str, Any] = {"mode": "ask"} if beside == "a mode" else {}
        if beside == "a message":
            await talk.say("And now?", compact=True)
        else:
            await talk.send({"compact": True, **host})
        values = await talk.values()
        if beside != "a message":
            await talk.say("And now?")
    said = [message.text for message in await talk.messages()]
    assert (values["compact"], values["phase"], len(values["notices"])) == (False, "idle", 1)
    assert values["mode"] == ("ask" if host else "code")
    if beside == "a message":
        assert talk.nodes == ["intake", "compact_history", "code"]
        assert said == [f"{HEADER}\n\n{TEXT}", "And now?", "Thanks."]
    else:
        assert talk.nodes[:2] == ["intake", "compact_history"]
        assert said == [f"{HEADER}\n\n{TEXT}", "Read it.", "Read.", "And now?", "Thanks."]
        assert values["usage"]["last"] is None
    assert len(whole) == 8


async def test_it_waits_for_an_open_question(workspace: Path, serve: Serve) -> None:
    write = call("write_file", path="a.txt", content="a")
    with serve(worker := Worker([*[read()] * 2, write, say("Written.")]), "anthropic"):
        talk = start(CLAUDE, workspace)
        await talk.say("Read it, then write.", mode="code")
        asked = await talk.waiting()
        await talk.send({"compact": True})
        assert await talk.waiting() == asked
        assert worker.asked == []
        await talk.decide(APPROVE)
        said = [message.text for message in await talk.messages()]
    assert (workspace / "a.txt").read_text() == "a"
    assert worker.asked == [1], "behind the result, before the next answer"
    assert said[0].endswith("\n\nFiles written in Code mode: a.txt.")
    assert said[1] == "Read it, then write."
    assert said[-1] == "Written."


LONG = "It is a long story. " * 2000
FAILURES: dict[str, tuple[Step, str]] = {
    "a call": (read(), "the model called a tool"),
    "cut off": (Answer("The user", is_truncated=True), "no complete answer"),
    "longer than what it replaces": (say(LONG), "hardly be shorter"),
    "broken off": (Answer("The user wants", ending="silent", events=4), "broke off"),
    "too long": (Failure("context"), "longer than it can read"),
    "request": (Failure("request", "No."), "No. (400)"),
    "declined": (Answer("I would rather not.", refusal="I would rather not."), "no complete"),
}


@pytest.mark.parametrize(("name", "kind"), [*zip(cycle(["anthropic", "openai"]), FAILURES)])
async def test_without_one_all_stays(workspace: Path, serve: Serve, name: str, kind: str) -> None:
    """It is tried once in a turn, and again in the next one."""
    step, why = FAILURES[kind]
    steps = [*[read()] * 7, say("Read."), say("Still here.")]
    with serve(worker := Worker(steps, step), name):
        talk = Conversation(
            make_agent(workspace, Models(MODELS[name], WINDOW)), is_streamed=kind == "broken off"
        )
        await talk.say("Read it.", mode="code")
        values = await talk.values()
        assert {*worker.asked} == {3}
        is_again = kind in ("too long", "request")  # with less in the request
        assert (len(worker.asked) > 1) == is_again
        assert len(worker.asked) < 8
        assert [type(message).__name__ for message in values["messages"]] == [
            "HumanMessage",
            *["AIMessage", "ToolMessage"] * 7,
            "AIMessage",
        ]
        assert len(values["instructions"]) == 1
        (notice,) = values["notices"]
        assert "stays as it is" in notice
        assert why in notice
        worker.summaries = [say(TEXT)]
        await talk.say("Hello?")
        messages = await talk.messages()
    assert is_summary(messages[0])
    assert [message.text for message in messages[-2:]] == ["Hello?", "Still here."]


async def test_too_long_for_a_model_of_which_none_knows(workspace: Path, serve: Serve) -> None:
    """Its refusal says so; nor does the whole fit with the request for a summary behind it."""
    with serve(
        worker := Worker([*[read("")] * 12, say("Done.")], say(TEXT)), window=WINDOW
    ) as provider:
        talk = start(MODELS["chat"], workspace, None)
        await talk.say("Read it twelve times.", mode="code")
        messages = await talk.messages()
    assert is_summary(messages[0])
    assert messages[-1].text == "Done."
    assert len(provider.too_long) == len(worker.asked) == 2, "in two parts"
    request = next(body for body in bodies(provider) if TEXT in body)
    assert request.count("read_file") < 20


@pytest.mark.parametrize("kind", ["a call", "too long"])
async def test_no_summary_does_not_end_the_thread(workspace: Path, serve: Serve, kind: str) -> None:
    """What the user said stays, and which files there are; a person is told."""
    step, _ = FAILURES[kind]
    plan = call("write_file", path="PLAN.md", content="Read it.")
    todos = [{"content": "Read on", "status": "in_progress"}]
    steps = [plan, call("update_todo_list", todos=todos), *[read("")] * 12, say("Done.")]
    worker = Worker([*steps, *[read("")] * 12, say("Again.")], step)
    with serve(worker, window=WINDOW) as provider:
        talk = Conversation(make_agent(workspace, Models(MODELS["chat"]), Approvals.AUTO))
        await talk.say("Plan it, then read it twelve times.", mode="code")
        first, *_, last = await talk.messages()
        assert last.text == "Done."
        *_, refused, shortened = (await talk.values())["notices"]
        assert "stays as it is" in refused
        assert "What the user said, and no summary, is in the place" in shortened
        assert first.text.startswith(NO_SUMMARY)
        assert "PLAN.md" in first.text
        await talk.say("And again.")
        first, *_, last = await talk.messages()
    assert last.text == "Again."
    assert first.text.count("Plan it, then read it twelve times.") == 1
    assert "- Read on (in_progress)" in bodies(provider)[-1]


async def test_what_fits_in_no_way_and_a_small_window_fail(workspace: Path, serve: Serve) -> None:
    with serve(worker := Worker([say("Hello."), say("Back.")]), "anthropic", window=4000):
        talk = start(CLAUDE, workspace, None)
        await talk.say("Hello.")
        with pytest.raises(ProviderError, match="longer than it can read"):
            await talk.say("word " * 4000)
        assert worker.asked == [1], "for a summary of what comes before it"
        last = (await talk.messages())[-1]
        await talk.send({"messages": [HumanMessage("Sorry.", id=last.id)]})
        assert [message.text for message in (await talk.messages())[-2:]] == ["Sorry.", "Back."]
    with serve([say("Hello.")], "anthropic") as provider:
        talk = start(CLAUDE, workspace, 1024)
        with pytest.raises(ConfigurationError, match=r"1,024 .* about: ask 1,.*CONTEXT_WINDOW"):
            await talk.say("Hello?")
        assert provider.requests == []
        talk.agent = make_agent(workspace, CLAUDE, saver=talk.agent.checkpointer)  # type: ignore[arg-type]
        await talk.send(None)
        assert [message.text for message in await talk.messages()] == ["Hello?", "Hello."]


async def test_it_cannot_loop(workspace: Path, serve: Serve) -> None:
    """A window that the prompt nearly fills: it would be due at each step."""
    with serve(worker := Worker([*[read("")] * 20, say("Done.")], say(TEXT)), "anthropic"):
        catalog = load_catalog()
        toolbox = build_toolbox(Workspace(workspace), catalog)
        deps = AgentDeps(catalog, toolbox, Models(CLAUDE), prompts=prompts_of(MODES))
        window = deps.seat("code").prompt_size + 100
        talk = start(CLAUDE, workspace, window)
        await talk.say("Read it.", mode="code")
        results = await talk.results()
    assert worker.asked == [20 - done for done in range(0, 20, MIN_NEW // 2)]
    text = next(iter(results.values())).text
    assert len(remove_marks(text)) < window + 100, "a quarter, at four letters to a token"
    assert "more characters left out" in text


async def test_nothing_to_summarize_and_what_the_offline_model_retells(workspace: Path) -> None:
    talk = Conversation(make_agent(workspace))
    await talk.send({"compact": True})
    values = await talk.values()
    assert (values["phase"], values["compact"], values.get("messages", [])) == ("idle", False, [])
    assert "there is nothing to summarize yet" in values["notices"][0]
    await talk.say("hello", compact=True)
    assert len(await talk.messages()) == 2
    talk = Conversation(make_agent(workspace))
    for _ in range(5):
        await talk.say("read long.txt")
    await talk.say("hello", compact=True)
    first, *more = await talk.messages()
    said = ["The user said:", *["- read long.txt"] * 5, "- hello"]
    assert first.text == "\n".join([f"{HEADER}\n", *said])
    assert len(more) == 2


async def test_what_was_cancelled_is_not_done_later(workspace: Path, serve: Serve) -> None:
    busy = Failure("overloaded", retry_after="30")
    with serve(worker := Worker([*[read()] * 3, say("Read."), say("Hello.")], busy), "anthropic"):
        talk = start(CLAUDE, workspace, None)
        await talk.say("Read it.", mode="code")
        before = await talk.messages()
        await cut_off(talk.send({"compact": True}), lambda: bool(worker.asked))
        await talk.say("Hello?")
        assert [message.text for message in (await talk.messages())[len(before) :]] == [
            "Hello?",
            "Hello.",
        ]
    assert len(worker.asked) == 1


@pytest.mark.parametrize("stop", ["before", "within", "after"])
async def test_another_goes_on(workspace: Path, serve: Serve, tmp_path: Path, stop: str) -> None:
    worker = Worker([*[read()] * 8, say("Read."), say("Thanks.")])
    with serve(worker, "anthropic", window=WINDOW):
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads")) as saver:
            talk = start(CLAUDE, workspace, saver=saver)
            run_input: Any = {"messages": [HumanMessage("Read it.")], "mode": "code"}
            if stop == "after":
                await talk.send_until("compact_history", run_input)
            elif stop == "before":
                await talk.agent.ainvoke(
                    run_input, talk.config, interrupt_before=["compact_history"]
                )
            else:
                worker.summaries.insert(0, Failure("overloaded", retry_after="30"))
                await cut_off(talk.send(run_input), lambda: bool(worker.asked))
            values = await talk.values()
        assert is_summary(values["messages"][0]) == (stop == "after")
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads")) as saver:
            config, talk = talk.config, start(CLAUDE, workspace, saver=saver)
            talk.config = config
            await talk.send(None)
            await talk.say("Thanks?")
            messages = await talk.messages()
            assert await count_read(talk) == 8
    assert is_summary(messages[0])
    assert messages[-1].text == "Thanks."
