"""Our LangGraph channels: LangGraph's own would save some values and then fail to read them.

The only module that names ``DeltaChannel``, which is beta: ``add_messages`` would write the whole
history at every step.
"""

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.messages.utils import convert_to_messages
from langgraph.channels import DeltaChannel, LastValue
from langgraph.checkpoint.base import PendingWrite
from langgraph.types import Overwrite
from typing_extensions import override


class Last(LastValue[Any]):
    """The last of the values written in one step.

    LangGraph's ``LastValue`` accepts only one. What two commands write while a question is open
    counts as one step, so the thread could never be read again.
    """

    @override
    def update(self, values: Sequence[object]) -> bool:
        # Of each channel, at each step, mostly with nothing.
        return bool(values) and super().update(values[-1:])


def use_last(channels: dict[str, Any]) -> None:
    """Put a ``Last`` in the place of each ``LastValue``."""
    for key, channel in channels.items():
        if isinstance(channel, LastValue):
            channels[key] = Last(channel.typ, key)


class Messages(DeltaChannel[list[AnyMessage]]):
    """The history. Skips what is no message, which an older version may have saved."""

    @override
    def update(self, values: Sequence[object]) -> bool:
        return super().update([_keep_messages(value) for value in values])

    @override
    def replay_writes(self, writes: Sequence[PendingWrite]) -> None:
        super().replay_writes([(task, key, _keep_messages(value)) for task, key, value in writes])

    @override
    def from_checkpoint(self, checkpoint: object) -> Self:
        new = super().from_checkpoint(checkpoint)
        new.value = _keep_messages(new.value)
        return new


def _keep_messages(write: object) -> Any:
    match write:
        case Overwrite(value=value) | {"__overwrite__": value}:
            return Overwrite(_keep_messages(value if isinstance(value, list) else []))
        case list() if all(isinstance(item, BaseMessage) for item in write):
            return write
        case list():
            return [item for item in write if _is_message(item)]
        case _:
            return write if _is_message(write) else []


def _is_message(item: Any) -> bool:
    """Whether LangChain makes a message of it."""
    try:
        convert_to_messages([item])
    except (ValueError, TypeError, NotImplementedError, LookupError):
        return False
    return True


def build_growing_list() -> DeltaChannel[list[Any]]:
    """A list that only grows, or is replaced as a whole; a checkpoint has just what is new."""
    return DeltaChannel(_extend)


def _extend(records: object, writes: Sequence[object]) -> list[Any]:
    return [record for part in (records, *writes) if isinstance(part, list) for record in part]


def append(records: object, more: object) -> list[Any]:
    """A reducer: both lists in one. Skips what is no list, as ``Messages`` does."""
    return _extend(records, [more])
