"""``StartedCalls``: a change that was begun is not begun a second time.

A checkpoint keeps what a finished task wrote. Of a task that a crash cut off it
knows only that it was due, and a run that goes on would run it anew: a second
commit, a second mail. So would a second click that names the checkpoint of the
first one, or a run that goes on from an older checkpoint.
"""

from typing import NamedTuple
from uuid import uuid4


class StartedCall(NamedTuple):
    """A call as it runs; another one where any of this is another."""

    message: str
    """The id of the message that made the call."""
    call: str
    digest: str
    """Of what runs: thread, tool, arguments, files, mode, workspace."""


class StartedCalls:
    """Which changes this process has begun; mutable, one to a process."""

    def __init__(self) -> None:
        self.process_id = uuid4().hex[:16]
        """Names this process's life; a plan carries that of the process that made it."""
        self._begun = set[StartedCall]()

    def begin(self, call: StartedCall, process_id: str | None) -> bool:
        """Whether the change may run: not if it may have been begun before.

        That is all that a process knows of a plan that another one made, the whole of it: of
        an older checkpoint what came later in it may have run long ago.

        The call is kept for good: that the tool has ended does not mean that its
        result is stored.
        """
        if process_id != self.process_id or call in self._begun:
            return False
        self._begun.add(call)
        return True
