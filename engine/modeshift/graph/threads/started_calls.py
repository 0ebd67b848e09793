"""``StartedCalls``: which calls this process has begun."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from modeshift.graph.threads.mailbox import Mailbox
from modeshift.tools.processes.background import BackgroundCommands


class StartedCalls:
    """The world-changing calls that this process has started: none runs twice. One per process.

    A checkpoint keeps what a finished call wrote. Of a call that a crash cut off it knows only
    that it was due, so a run that continues would run it anew: a second commit, a second mail. So
    would a second click that names the checkpoint of the first one.
    """

    def __init__(self, mailbox: Mailbox | None = None) -> None:
        """``mailbox`` is where the host sets a thread's mode while a run goes on."""
        self.mailbox = mailbox or Mailbox()
        self.process_id = uuid4().hex[:16]
        """Stored in each plan that this process makes."""
        self._begun = set[str]()
        self._calls = set[str]()
        self.background = BackgroundCommands()
        """Those of them that may still run."""

    def begin(self, thread: str, planned: Mapping[str, Any]) -> bool:
        """Record the call as started; False if it may have run before."""
        if self.has_begun(thread, planned):
            return False
        self._begun.add(_identify(thread, planned))
        self._calls.add(_name_call(planned))
        return True

    def has_begun(self, thread: str, planned: Mapping[str, Any]) -> bool:
        """Whether it may have run: in a plan that another process made, any call may have.

        Never forgotten: that a tool has ended does not mean that its result is stored.
        """
        is_ours = planned.get("process_id") == self.process_id
        return not is_ours or _identify(thread, planned) in self._begun

    def may_have_begun(self, planned: Mapping[str, Any]) -> bool:
        """Whether a call of a plan that was cut off may have taken effect."""
        is_ours = planned.get("process_id") == self.process_id
        return not is_ours or _name_call(planned) in self._calls


def _identify(thread: str, planned: Mapping[str, Any]) -> str:
    """As it was approved: with other arguments it is another call. Not by what it would do now."""
    approved = planned["approved"]
    return str(approved["digest"]) if approved else f"{thread} {_name_call(planned)}"


def _name_call(planned: Mapping[str, Any]) -> str:
    """Among all threads: a model's ids may be the same in several."""
    return f"{planned.get('message')} {planned['call']['id']}"
