"""Histories that every chat template takes: the server of llama.cpp refuses none of them."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from modeshift.messages.instructions import remove_instructions
from modeshift.models.loading import Models
from modeshift.modes.errors import ModeshiftError, ProviderError
from tests.graph.models.model_thread import use
from tests.harness.conversation import Conversation, cut_off, make_agent
from tests.harness.server import free_port
from tests.local.conftest import StartLlama
from tests.local.llama import Front, speaking
from tests.local.templates import read_template, read_templates
from tests.provider.script import Answer, Call, Failure, Step, call, say

REFUSING = {
    "Mistral-Small-3.2-24B-Instruct-2506": "must alternate, results not counted; ids of nine (400)",
    "Qwen3.5-4B": "a system message that is not the first (500)",
    "meta-llama-Llama-3.1-8B-Instruct": "single tool-calls at once",
    "mistralai-Ministral-3-14B-Reasoning-2512": "must alternate, results not counted (500)",
}
"""A template for each kind of refusal; all others have these, too, or none."""
WITHOUT_TOOLS = {
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai-DeepSeek-V3.1",
    "fireworks-ai-llama-3-firefunction-v2",
    "google-gemma-2-2b-it",
    "llama-cpp-rwkv-world",
    "microsoft-Phi-3.5-mini-instruct",
}
WITHOUT_LISTS = "CohereForAI-c4ai-command-r-plus-tool_use"
"""Its template fails in llama.cpp for each tool that takes a list: ``items`` is a method there."""
OTHERS = sorted(read_templates().keys() - {*REFUSING, *WITHOUT_TOOLS, WITHOUT_LISTS})
READ = call("read_file", text="Let me look.", path="a.txt")
BOTH = Answer(calls=(READ.calls[0], Call("list_files", {"path": "."})))
MODES = ("ask", "code", "architect", "debug")
TURNS: dict[str, list[Step]] = {
    "answered": [say("So it is.")],
    "read": [READ, say("It says old.")],
    "read twice at once": [BOTH, say("It says old, and there is no more.")],
    "completed": [READ, call("attempt_completion", result="It says old.")],
    "refused": [Failure("request", "No.")],
    "failed behind a result": [BOTH, Failure("request", "No.")],
    "empty": [Answer("")],
    "stopped": [Answer("Too late.", pause=0.2)],
    "a question left open": [call("switch_mode", mode_slug="debug", reason="Why not?")],
}


async def take_turns(talk: Conversation, front: Front, number: int, seed: str) -> None:
    """Turns of all kinds in a random order; fifty go through all modes, five through two."""
    kinds = random.Random(seed).choices([*TURNS], k=number)
    for turn, kind in enumerate(kinds):
        steps = [*TURNS[kind]]
        front.script = lambda _, steps=steps: steps.pop(0)
        mode = MODES[turn * len(MODES) // max(number, 10)]
        words = talk.say(f"Turn {turn}, please: {kind}.", mode=mode)
        if kind == "stopped":
            await cut_off(words, lambda: not steps)  # noqa: B023  # it is awaited here
            continue
        with suppress(ProviderError):
            await words
        assert steps == [], (kind, front.failures)


def find_changed(bodies: list[dict[str, Any]]) -> list[int]:
    """The requests that do not begin with all of the one before, whatever its tools are.

    The mode's words at the end of a message are told again if no answer came.
    """
    histories = [body["messages"] for body in bodies]
    return [
        number
        for number, (before, after) in enumerate(pairwise(histories), 1)
        if before[:-1] != after[: len(before) - 1] or not _continues(before, after)
    ]


def _continues(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> bool:
    last, same = before[-1], after[len(before) - 1]
    words = remove_instructions(last["content"])
    return same["role"] == last["role"] and str(same["content"]).startswith(words)


@pytest.fixture
def hold_talk(
    start_llama: StartLlama, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Awaitable[Front]]:
    """Turns under a template, in a thread that another model began."""

    async def hold(template: str, number: int) -> Front:
        (workspace / "a.txt").write_text("old")
        with speaking(start_llama(read_template(template), window=65536), []) as front:
            use(front, monkeypatch)
            talk = Conversation(make_agent(workspace))
            await talk.say("read a.txt")
            saver: Any = talk.agent.checkpointer
            talk.agent = make_agent(workspace, "openai:local", saver=saver)
            await take_turns(talk, front, number, template)
            return front

    return hold


@pytest.mark.parametrize("is_there", [False, True], ids=["not there", "a window of 512 tokens"])
async def test_a_thread_goes_on_with_a_server_that_works(
    start_llama: StartLlama, workspace: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    """The words of the turn that failed go with the next message."""
    template = read_template("Mistral-Small-3.2-24B-Instruct-2506")
    url = start_llama(template, window=512).url if is_there else f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    talk = Conversation(make_agent(workspace, "openai:local"))
    with pytest.raises(ModeshiftError, match="window" if is_there else "cannot be reached; start"):
        await talk.say("hello")
    with speaking(start_llama(template), [say("Hello.")]) as front:
        use(front, monkeypatch)
        saver: Any = talk.agent.checkpointer
        talk.agent = make_agent(workspace, "openai:local", saver=saver)
        await talk.say("again")
    assert front.failures == []
    (request,) = front.requests
    assert request.body["messages"][-1]["content"].startswith("hello\n\nagain")


async def test_what_a_template_raised_is_said(
    start_llama: StartLlama, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with speaking(start_llama(read_template(WITHOUT_LISTS)), [say("Never said.")]) as front:
        use(front, monkeypatch)
        talk = Conversation(make_agent(workspace, "openai:local"))
        with pytest.raises(ProviderError, match=r"did not answer: Function has no .*; start the"):
            await talk.say("hello")
    assert len(front.failures) == len(front.requests) == 1


async def test_a_500_of_a_template_is_a_refusal(
    start_llama: StartLlama, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked once more in the way that all templates take, and so from then on."""
    with speaking(start_llama(read_template("Qwen3.5-4B")), [say("One."), say("Two.")]) as front:
        use(front, monkeypatch)
        models = Models("openai:local", mode_changes="allowed_tools")
        talk = Conversation(make_agent(workspace, models))
        await talk.say("hello")
        await talk.say("again", mode="code")
    ((status, body),) = front.failures
    assert (status, "must be at the beginning" in body["error"]["message"]) == (500, True)
    assert len(front.requests) == 3


@pytest.mark.parametrize("template", REFUSING)
async def test_a_strict_template_refuses_nothing(hold_talk: Any, template: str) -> None:
    """But several calls in an answer where it takes one, once."""
    front = await hold_talk(template, 50)
    is_single = "single" in REFUSING[template]
    assert all(REFUSING[template] in failure["error"]["message"] for _, failure in front.failures)
    assert len(front.failures) == is_single
    if not is_single:
        assert find_changed([request.body for request in front.requests]) == []


@pytest.mark.parametrize("template", OTHERS)
async def test_no_other_template_refuses_anything(hold_talk: Any, template: str) -> None:
    front = await hold_talk(template, 5)
    assert all("single" in failure["error"]["message"] for _, failure in front.failures)
    assert len(front.failures) <= template.startswith("meta-llama")
