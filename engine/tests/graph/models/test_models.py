"""What a model needs before it is asked, its limits, its errors; and the model that is offline."""

import asyncio
import sys
from collections.abc import AsyncIterator
from itertools import repeat
from typing import Any

import httpx2
import pytest
from langchain_core.exceptions import ModelTimeoutError
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk
from typing_extensions import override

from modeshift.models.bound_model import BoundModel, call_model
from modeshift.models.loading import load_model
from modeshift.models.offline import HELP, OfflineModel, parse, respond
from modeshift.models.provider_errors import is_worth_another_try, provider_error
from modeshift.models.providers import PROVIDERS, TIME_LIMIT
from modeshift.models.service import ModelService
from modeshift.modes.errors import ConfigurationError, ProviderError
from modeshift.testing.plugin import Snapshot
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit
from tests.harness.root import ENGINE
from tests.tables import rows


def test_what_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    """Also where the package of a provider is not installed."""
    told = {}
    for name, missing in (
        *(("openai:x", ""), ("openai:x", "langchain_openai")),
        *(("anthropic:x", ""), ("anthropic:x", "langchain_anthropic")),
        *(("ollama:x", "langchain_ollama"), ("claude", ""), (":gpt", "")),
        *(("replay:cassettes/a.yaml", ""), ("opnai:x", ""), ("mistralai:m", "")),
    ):
        with monkeypatch.context() as patch, pytest.raises(ConfigurationError) as caught:
            for module in [key for key in sys.modules if key.partition(".")[0] == missing]:
                patch.setitem(sys.modules, module, None)
            patch.setitem(sys.modules, missing, None)
            load_model(name)
        told[f"{name} without {missing}" if missing else name] = str(caught.value).partition(
            " Supported model"
        )[0]
    snapshot("models.txt", told)


@rows(
    "variable value name",
    ("OPENAI_BASE_URL", "127.0.0.1:8080/v1", "openai:qwen3"),
    ("OPENAI_API_BASE", "ftp://server/v1", "openai:qwen3"),
    ("ANTHROPIC_BASE_URL", "http://", "anthropic:claude-sonnet-5-5"),
    ("OLLAMA_HOST", "http://a:port", "ollama:qwen3"),
    ("OPENAI_BASE_URL", "http://user:hunter2pass@127.0.0.1:1/v1", "openai:qwen3"),
    ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1?api_key=hunter2pass", "openai:qwen3"),
    ("OLLAMA_HOST", "user:hunter2pass@somewhere:11434", "ollama:qwen3"),
)
def test_bad_address(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"needs {variable} (to be|without)") as caught:
        load_model(name)
    assert (repr(value) in str(caught.value)) is ("hunter2pass" not in value)
    assert "hunter2" not in str(caught.value)


def test_addresses_and_keys_of_local_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("127.0.0.1:11434", "somewhere", "http://somewhere:11434"):
        monkeypatch.setenv("OLLAMA_HOST", value)
        load_model("ollama:qwen3")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
    assert key_of("openai:qwen3") == "none"
    monkeypatch.setenv("OPENAI_API_KEY", "my-key")
    assert key_of("openai:qwen3") == "my-key"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080")
    with pytest.raises(ConfigurationError, match="needs ANTHROPIC_API_KEY"):
        load_model("anthropic:claude-sonnet-5-5")
    for key in ("a-key\n", " a-key", "a\nkey", "schl\u00fcssel"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(ConfigurationError, match="needs OPENAI_API_KEY without spaces"):
            load_model("openai:gpt-5.5")


def key_of(name: str) -> str:
    model = load_model(name)
    return str(model.openai_api_key.get_secret_value())  # type: ignore[attr-defined]  # ChatOpenAI's


def test_no_client_retries_and_all_have_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is installed, and not in our table: Azure's. Google's counts otherwise."""
    for provider in ("OPENAI", "ANTHROPIC", "AZURE_OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OPENAI_API_VERSION", "2026-01-01")
    models: list[Any] = [
        load_model(name) for name in ("openai:x", "azure_openai:x", "anthropic:x", "ollama:x")
    ]
    *openais, anthropic, ollama = models
    for model in openais:
        assert (model.root_async_client.max_retries, model.stream_chunk_timeout) == (0, TIME_LIMIT)
        assert model.root_async_client.timeout == TIME_LIMIT
    client = anthropic._async_client
    assert (client.max_retries, client.timeout) == (0, TIME_LIMIT)
    assert ollama._async_client._client.timeout.read == TIME_LIMIT
    google: Any = load_model("google_genai:x")
    assert (google.max_retries, google.timeout) == (1, TIME_LIMIT), "the first request is one"


class SlowModel(GenericFakeChatModel):
    """Calls ``pause`` before each of its words, and has no limits of its own."""

    pause: Any
    streaming: bool = True

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in super()._stream(*args, **kwargs):
            await self.pause()
            yield chunk


async def ask_slow(pause: Any, **options: Any) -> str:
    model = SlowModel(messages=repeat(AIMessage("one two three")), pause=pause, streaming=True)
    prompt = SystemMessage("Be slow.")
    bound = BoundModel(prompt, model, {}, (), "slow:x", ModelService("slow:x"), **options)
    return (await call_model(bound, [HumanMessage("go")], {})).text


async def test_the_time_limit_starts_with_each_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's clock is put forward by two thirds of the limit before each word."""
    with pytest.raises(ProviderError, match=r"\(tried 3 times\): no answer in time"):
        async with asyncio.timeout(20):
            await ask_slow(asyncio.Event().wait, time_limit=0.01, first_wait=0)
    loop = asyncio.get_running_loop()
    clock = loop.time
    passed = 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)

    async def pause() -> None:
        nonlocal passed
        passed += TIME_LIMIT * 2 / 3
        await asyncio.sleep(0)

    assert await ask_slow(pause) == "one two three"
    assert passed > 2 * TIME_LIMIT


def test_the_extras_are_those_of_the_project() -> None:
    text = (ENGINE / "pyproject.toml").read_text()
    for provider in PROVIDERS.values():
        assert f'{provider.extra} = ["langchain-{provider.extra}>=' in text


def of_mistral(status: int) -> Exception:
    request = httpx2.Request("POST", "http://127.0.0.1:1")
    response = httpx2.Response(status, headers={"retry-after": "7"}, request=request)
    return httpx2.HTTPStatusError("no", request=request, response=response)


def test_errors_that_may_pass(snapshot: Snapshot) -> None:
    """Also those of clients without LangChain's classes: Ollama's, Mistral's; the last may not."""
    errors = [
        *(ModelTimeoutError("Request timed out."), TimeoutError(), httpx2.ReadTimeout("")),
        *(httpx2.ConnectError("All failed"), of_mistral(529), of_mistral(429), ValueError("no")),
    ]
    assert [is_worth_another_try(error) for error in errors] == [True] * 6 + [False]
    told = [str(provider_error(error, "ollama:qwen3", 3, has_begun=False)) for error in errors]
    snapshot("provider-errors.txt", "".join(f"{text}\n" for text in told))


@pytest.mark.parametrize("before", ["", "x" * 590, "x1" * 9_900])
def test_no_error_holds_a_secret(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """Not even if the text is cut in the middle of it."""
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("DATABASE", "postgresql://me:staple-of-mine@localhost/db")
    error = RuntimeError(f"{before} correct-horse-battery staple-of-mine sk-or-v1-0123456789abcdef")
    said = str(provider_error(error, "openai:x", 1, has_begun=False))
    for part in ("correct", "staple", "sk-or"):
        assert part not in said


@rows(
    "text steps",
    ("list", "list_files {}"),
    ("read a b.txt", "read_file {'path': 'a b.txt'}"),
    ("search a in b in src", "search_files {'regex': 'a in b', 'path': 'src'}"),
    ("write a.txt: x: y", "write_file {'path': 'a.txt', 'content': 'x: y'}"),
    (r"write a.txt: x\ny", r"write_file {'path': 'a.txt', 'content': 'x\ny'}"),
    (
        "replace a b with c d in e",
        "edit_file {'path': 'e', 'edits': [{'old': 'a b', 'new': 'c d'}]}",
    ),
    ("run make && make test", "execute_command {'command': 'make && make test'}"),
    ("switch to code", "switch_mode {'mode_slug': 'code', 'reason': 'You told me to.'}"),
    ('call mcp__git__log {"n": 1}', "mcp__git__log {'n': 1}"),
    ("call mcp__git__log", "mcp__git__log {}"),
    ("ask: Why?", "ask_followup_question {'question': 'Why?'}"),
    ("done: all of it", "attempt_completion {'result': 'all of it'}"),
    (
        "read a & write b: x & y & list\n\n list",
        "read_file {'path': 'a'} & write_file {'path': 'b', 'content': 'x & y'} & "
        "list_files {}\nlist_files {}",
    ),
)
def test_lines_are_steps_and_ampersands_join_commands(text: str, steps: str) -> None:
    parsed = (" & ".join(f"{name} {args}" for name, args in step.calls) for step in parse(text))
    assert "\n".join(parsed) == steps


def test_a_todo_list_and_what_gets_help() -> None:
    ((_, args),) = parse("todo: a; b;")[0].calls
    assert [each["content"] for each in args["todos"]] == ["a", "b"]
    no_commands = ("hello", "", "read", "switch to", "write x", "call x {a}")
    for text in (*no_commands, "list\nplease", "hello & list", "write x & list"):
        assert parse(text) == [], text
        assert OfflineModel().invoke([HumanMessage(text)]).text == HELP


async def test_a_stream_adds_up_to_the_answer() -> None:
    bound = OfflineModel().bind_tools([{"name": "list_files", "description": "", "parameters": {}}])
    for text in ("hello", "list"):
        pieces: Any = [piece async for piece in bound.astream(text)]
        assert len(pieces) > 1
        whole = pieces[0] + pieces[1:]
        said = await bound.ainvoke(text)
        assert (whole.text, whole.tool_calls) == (said.text, said.tool_calls)
        assert whole.usage_metadata == said.usage_metadata


MODES = """You work in modes.

The modes there are:

- look: To answer questions.
- draft: To write a plan.
- build: To write, change and run files.
"""


@rows(
    "line modes mode",
    ("write a.md: x", MODES, "draft"),
    ("write a.py: x", MODES, "build"),
    ("write a.md: x & run ls", MODES, "build"),
    (
        "write a.md: x",
        "\nThe modes there are:\n\n- make: To write anything.\n- and more: not here\n",
        "make",
    ),
    ("run ls", "no modes", None),
)
def test_it_asks_for_a_mode_that_there_is(line: str, modes: str, mode: str | None) -> None:
    """By what the modes say of themselves; None if none of them says that it has the tool."""
    answer = respond([SystemMessage(modes), HumanMessage(line)], {"switch_mode"})
    assert [call["args"]["mode_slug"] for call in answer.tool_calls] == ([mode] if mode else [])
    assert ("refused: this mode has no tool" in answer.text) is (mode is None)


async def test_a_refused_line_is_left_and_the_next_one_done(talk: Conversation) -> None:
    await talk.say("write a.txt: x\nlist")
    await talk.decide(REJECT)
    report = (await talk.messages())[-1].text
    assert "- write a.txt: x: refused: " in report
    assert "- list: . is empty." in report
    await talk.say("run ls\nwrite plan.md: x")
    await talk.decide(edit("switch_mode", mode_slug="architect", reason="rather"))
    assert [each["name"] for each in await talk.waiting()] == ["write_file"]
    await talk.decide(APPROVE)
    report = (await talk.messages())[-1].text
    assert "- run ls: refused: this mode has no tool for it." in report
    assert "- write plan.md: x: Created plan.md" in report
