"""``make_ids_after`` and ``read_history_at_once`` for ``langgraph``; seen with 1.2.22."""

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.base import id as ids
from langgraph.graph.message import _messages_delta_reducer

messages_delta_reducer = _messages_delta_reducer
"""``add_messages`` for a ``DeltaChannel``. Private under this name: langgraph#7586."""


def make_ids_after(saved: CheckpointTuple | None) -> CheckpointTuple | None:
    """The checkpoint that a run begins with; ids made next sort after its id.

    An id begins with the time, and the greatest is the newest. On a machine whose clock is behind
    the one that wrote it, or was set back, whatever follows would be older, and so be lost. No
    issue asks for it yet: "uuid6 of checkpoints goes back with the clock; a saver that has read a
    newer checkpoint should be able to say so".
    """
    if saved is not None:
        time = ids.UUID(saved.checkpoint["id"]).time  # in 100 ns
        ids._last_v6_timestamp = max(time, ids._last_v6_timestamp or 0)  # type: ignore[assignment]
    return saved


def read_history_at_once(checkpointer: object) -> None:
    """Have the dev server's wrapper of our checkpointer read a channel's history by our method.

    The wrapper (``langgraph_api._checkpointer._adapter``) hands on every method but this one, and
    would read checkpoint by checkpoint. No issue asks for it yet: "the adapter should hand on
    aget_delta_channel_history where the checkpointer has it".
    """
    if read := getattr(checkpointer, "read_history", None):
        vars(checkpointer)["aget_delta_channel_history"] = read
