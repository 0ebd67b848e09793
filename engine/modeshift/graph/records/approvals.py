"""What a person was asked, what they approved, and the calls that are due."""

from typing import Any, NotRequired

from langchain_core.messages import ToolCall
from typing_extensions import TypedDict


class Remembered(TypedDict):
    """A person's "always allow this", for one tool and pattern in one mode of the thread."""

    id: str
    mode: str
    tool: str
    pattern: str
    exact: bool
    """Whether ``pattern`` is one command or file, to be taken literally."""
    digest: str
    """Of the mode and the workspace it was given in; it applies in no other."""
    when: str


class Asked(TypedDict):
    """What a person was asked about; an answer to anything else is void."""

    digest: str
    """See ``judging.digest_question``."""
    contents: dict[str, str]
    """Digests of the files that the calls would edit, by real path."""
    approvals: NotRequired[str]
    """The policy under which it was asked; the question stays while another one is set."""


class Approved(TypedDict):
    """What a person approved: one call with these arguments, and no other."""

    args: dict[str, Any]
    edited: bool
    digest: str
    """See ``Judged.digest``."""
    contents: NotRequired[dict[str, str]]
    """Digests of the files that it edits, by real path."""


class Planned(TypedDict):
    """A call that is to run, or to be refused for the reason in ``denied``."""

    call: ToolCall
    message: NotRequired[str]
    """The id of the message that made it."""
    approved: Approved | None
    denied: str | None
    """Why it is refused, as it was judged when the model made it."""
    process_id: NotRequired[str]
    """Of the process that planned it; see ``StartedCalls``."""
