"""``shorten_log``: what the server's log leaves out, with ``VERBOSE=1`` too."""

import logging
import re
from typing import Any

_NOISY = (
    "langgraph_api._checkpointer._adapter",  # what SQLite cannot do; docs/operations.md says it
    "langgraph_api.graph",  # that to load ours took a tenth of a second
)
_WITH_TRACEBACKS = ("langgraph_api.worker", "langgraph_api.errors")
_USER_ERROR = re.compile(r"^modes\.errors\.\w+: .*", re.MULTILINE)


def shorten_log() -> None:
    """Set up the log of this process."""
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in _WITH_TRACEBACKS:
        logging.getLogger(name).addFilter(_drop_traceback)


def _drop_traceback(record: logging.LogRecord) -> bool:
    """Keeps only the message of an error that a person can mend; structlog has put it in a dict."""
    event: Any = record.msg
    if isinstance(event, dict) and (found := _USER_ERROR.search(str(event.get("exception", "")))):
        event["exception"] = found[0]
    return True
