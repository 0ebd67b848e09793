"""``read_conversations``: the whole history of a session, with what summaries have replaced."""

from collections import defaultdict
from itertools import chain

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig

from modeshift.editor.session_config import SessionConfig
from modeshift.events import COMPACTING
from modeshift.threads.mailbox import StateValues
from modeshift.threads.state import Subtask

History = tuple[Subtask | None, list[AnyMessage]]


async def read_conversations(config: SessionConfig, values: StateValues) -> list[History]:
    """The conversations with what summaries have replaced, which is in earlier checkpoints."""
    states, now = [values], _list_conversations(values)
    if any(isinstance(message, AIMessage) for _, messages in now for message in messages[:1]):
        wanted: RunnableConfig | None = None  # not what was undone
        async for state in config.loaded.agent.aget_state_history(config.thread.config):
            if wanted is None or state.config == wanted:
                wanted = state.parent_config
                states += [state.values] if state.next == (COMPACTING,) else []
    histories = defaultdict[object, dict[str | None, AnyMessage]](dict)
    for subtask, messages in chain(*map(_list_conversations, reversed(states))):
        known = histories[subtask and subtask["id"]]
        known.update({message.id: message for message in messages if message.id not in known})
    return [(subtask, [*histories[subtask and subtask["id"]].values()]) for subtask, _ in now]


def _list_conversations(values: StateValues) -> list[History]:
    """The conversations that wait for a sub-task, and the one that goes on."""
    waiting = [(parent["subtask"], parent["messages"]) for parent in values.get("parents", [])]
    return [*waiting, (values.get("subtask"), values.get("messages", []))]
