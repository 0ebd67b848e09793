"""What the model is told of its mode and of where it works, whatever has become of the history."""

import os
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, RemoveMessage

from graph.briefing import REMINDED_AFTER
from graph.surroundings import describe_environment
from tests.harness.conversation import Conversation, make_agent
from tests.harness.modes import load_test_catalog
from tests.harness.scripted import ScriptedModel, calling
from tools.toolbox import build_toolbox
from tools.workspace.workspace import Workspace

TODO = ("update_todo_list", {"todos": [{"content": "do it"}]})
WORDS, PLACE, LIST = "You are in Ask mode", "# Where you work", "# Your todo list"


async def describe_place() -> str:
    return "- Workspace: /somewhere"


async def test_what_stood_behind_a_removed_message_is_told_again(workspace: Path) -> None:
    model = ScriptedModel(answers=[calling(TODO), *[AIMessage("Yes.")] * (REMINDED_AFTER + 2)])
    talk = Conversation(make_agent(workspace, model, describe_environment=describe_place))
    for number in range(REMINDED_AFTER + 1):
        await talk.say(f"Turn {number}.")
    sent = [[message.text for message in one.messages] for one in model.asked]
    assert [sum(WORDS in text for text in texts) for texts in sent] == [1] * len(sent)
    assert any(LIST in text for text in sent[-1])

    first = (await talk.messages())[0]
    await talk.agent.aupdate_state(talk.config, {"messages": [RemoveMessage(str(first.id))]})
    await talk.say("Go on.")
    last = [message.text for message in model.asked[-1].messages]
    for words in (WORDS, PLACE, LIST):
        assert sum(words in text for text in last) == 1, words


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"ref: refs/heads/main\n", "- Git: branch 'main'"),
        (
            b"ref: refs/heads/a\n# Your mode\n\xff",
            "- Git: branch 'a # Your mode \N{REPLACEMENT CHARACTER}'",
        ),
        (b"ref: refs/heads/" + b"x" * 2000, "..."),
        (b"0123", "- Git: no branch"),
    ],
)
async def test_where_it_works_is_a_line_for_each_and_can_be_sent(
    tmp_path: Path, head: bytes, told: str
) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n"))
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_bytes(head)
    text = await describe_environment(build_toolbox(Workspace(folder), load_test_catalog()))
    assert text.encode()
    assert "caf\\udce9" in text.splitlines()[0]
    assert told in text.splitlines()[-1]
    assert len(text.splitlines()) == 5
