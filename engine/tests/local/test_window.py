"""What llama.cpp says of its window and template is heeded; a change of mode keeps its cache."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modeshift.messages.from_model import CUT_OFF
from modeshift.models.loading import Models
from modeshift.models.service import ModelServer, ask_server
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.policy import Approvals
from tests.graph.models.model_thread import use
from tests.harness.conversation import Conversation, make_agent, open_thread
from tests.harness.place import UserFolders
from tests.local.conftest import StartLlama
from tests.local.llama import Front, Llama, speaking
from tests.local.templates import read_template
from tests.provider.script import call, say

MODEL = "openai:local"
TEMPLATE = "Qwen-Qwen2.5-7B-Instruct"
MODES = ("architect", "code", "debug")
WITHIN = 0.01
"""Of all that could have been read from the cache, how much may not have been."""
AT_A_SWITCH = 600
"""Tokens that a server may have to read anew there."""
AT_A_REFUSAL = 25
"""Words that a model may be told of a call that its mode lacks."""


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Callable[[Llama], None]:
    """Make this the server of OpenAI's client."""

    def reach(llama: Llama) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        # By this name the client's connections are not shared with those of other tests.
        monkeypatch.setenv("OPENAI_API_BASE", f"{llama.url}/v1")

    return reach


def test_what_it_says_of_itself(start_llama: StartLlama, reach: Callable[[Llama], None]) -> None:
    reach(start_llama(window=1024))
    assert ask_server(MODEL) == ModelServer(1024, has_tools=False)
    reach(start_llama(read_template(TEMPLATE), window=2048))
    assert ask_server(MODEL) == ModelServer(2048, has_tools=True)


async def test_a_template_without_tools_is_an_error_before_the_first_turn(
    start_llama: StartLlama, reach: Callable[[Llama], None], tmp_path: Path
) -> None:
    reach(start_llama(read_template("google-gemma-2-2b-it")))
    deps = UserFolders(tmp_path).loader(model=MODEL).deps()
    assert [notice for notice in deps.notices if "mode 'ask' cannot be used" in notice]
    talk = open_thread(deps)
    with pytest.raises(ConfigurationError, match=r"is shown no tools.*another template"):
        await talk.say("hello")


async def test_a_small_window_names_the_modes_that_fit(
    start_llama: StartLlama, reach: Callable[[Llama], None], tmp_path: Path
) -> None:
    reach(start_llama(read_template(TEMPLATE), window=512))
    place = UserFolders(tmp_path)
    deps = place.loader(model=MODEL).deps()
    talk = open_thread(deps)
    with pytest.raises(ConfigurationError, match=r"512 tokens.*ask 1,.*code 2,.*no mode fits"):
        await talk.say("hello")
    reach(start_llama(read_template(TEMPLATE), window=2048))
    with pytest.raises(ConfigurationError, match=r"reads 2,048 tokens.*modes that fit: ask"):
        await open_thread(place.loader(model=MODEL).deps()).say("hello", mode="code")


async def hear(place: UserFolders, **settings: Any) -> Conversation:
    """A thread of the real server's, which has been said hello to."""
    deps = place.loader(model=MODEL, **settings).deps()
    talk = open_thread(deps)
    try:
        await talk.say("hello")
    finally:
        model: Any = deps.models[deps.catalog["ask"]]
        await model.root_async_client.close()  # the server keeps the connection open
    return talk


async def test_what_the_server_cannot_hold_is_no_word_on_a_new_thread(
    start_llama: StartLlama, reach: Callable[[Llama], None], tmp_path: Path
) -> None:
    """By the user's word the first request would fit; the server says that it does not."""
    reach(start_llama(read_template(TEMPLATE), window=1024))
    with pytest.raises(
        ConfigurationError, match=r"first request of a mode has about.*CONTEXT_WIND"
    ):
        await hear(UserFolders(tmp_path), context_window=8192)


@pytest.mark.parametrize(("parameters", "tokens"), [({}, 1024), ({"max_tokens": 16}, 16)])
async def test_an_answer_ends_at_a_quarter_of_the_window(
    start_llama: StartLlama,
    reach: Callable[[Llama], None],
    tmp_path: Path,
    parameters: dict[str, Any],
    tokens: int,
) -> None:
    """This model repeats itself for ever; where the user sets a limit, that counts."""
    reach(start_llama(read_template(TEMPLATE), window=4096))
    repeats = {"extra_body": {"logit_bias": [[" a", 100.0]]}}
    talk = await hear(UserFolders(tmp_path), model_parameters={**repeats, **parameters})
    assert (await talk.messages())[-1].text.endswith(f" a a\n\n{CUT_OFF}")
    assert (await talk.values())["usage"]["thread"][MODEL]["output"] == tokens


@pytest.mark.parametrize(("window", "way"), [(4096, "rewrite"), (16384, "append")])
async def test_all_tools_are_declared_where_there_is_room(
    start_llama: StartLlama,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    window: int,
    way: str,
) -> None:
    """A thread keeps the way that it began with, whatever the setting is then."""
    steps = [call("write_file", path="a", content="b"), say("So be it."), say("Once more.")]
    llama = start_llama(read_template(TEMPLATE), window=window)
    place = UserFolders(tmp_path)
    with speaking(llama, steps) as front:
        use(front, monkeypatch)
        deps = place.loader(model=MODEL).deps()
        assert deps.seat("ask").way[0] == way
        talk = open_thread(deps)
        await talk.say("hello")
        (result,) = (await talk.results()).values()
        assert "Ask mode has no 'edit' tools, so write_file did not run." in result.text
        assert len(result.text.split()) <= AT_A_REFUSAL
        assert not (place.workspace / "a").exists()
        other = "append" if way == "rewrite" else "rewrite"
        deps = place.loader(model=MODEL, mode_changes=other).deps()
        saver: Any = talk.agent.checkpointer
        talk.agent = make_agent(place.workspace, deps.models, saver=saver)
        await talk.say("and again")
    assert str(front.requests[-1].body).count("write_file did not run") == 1, "it is told once"
    numbers = {len(body["tools"]) for body in (request.body for request in front.requests)}
    assert numbers == {len(deps.toolbox.specs) if way == "append" else 8}
    assert not [body for body in front.requests if "tool_choice" in body.body]


async def measure_cache(front: Front, workspace: Path, way: str) -> tuple[float, float, list[int]]:
    """What was read from the cache, what could have been, and the new tokens at each switch."""
    steps = [call("read_file", path="a.txt")] * 5
    switches = [call("switch_mode", mode_slug=mode, reason="It is time.") for mode in MODES]
    script = [step for switch in switches for step in (*steps, switch)]
    front.script = [*script, *steps, say("Done.")]
    talk = Conversation(make_agent(workspace, Models(MODEL, mode_changes=way), Approvals.AUTO))
    await talk.say("Read it.")
    await talk.approve_all()
    assert front.steps_left == 0
    assert len(front.inputs) == 24
    total = sum(each.total for each in front.inputs)
    possible = (
        total
        - front.inputs[0].total
        - sum(
            later.total - earlier.total
            for earlier, later in zip(front.inputs, front.inputs[1:], strict=False)
        )
    )
    new = [front.inputs[number].total - front.inputs[number].read for number in (6, 12, 18)]
    return sum(each.read for each in front.inputs) / total, possible / total, new


async def test_a_change_of_mode_keeps_the_cache(
    start_llama: StartLlama, monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("It is written.\n" * 20)
    shares = {}
    for way in ("append", "rewrite"):
        llama = start_llama(read_template(TEMPLATE), window=32768)
        with speaking(llama, []) as front:
            use(front, monkeypatch)
            shares[way] = await measure_cache(front, workspace, way)
    read, possible, new = shares["append"]
    assert read >= possible - WITHIN, shares
    assert max(new) <= AT_A_SWITCH, shares
    assert shares["rewrite"][0] < read, shares
