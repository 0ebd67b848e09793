"""``shorten_log``: leaves out of the server's log what nobody needs, with ``VERBOSE=1`` too."""

import logging
import re
import warnings
from typing import Any

from starlette.requests import ClientDisconnect

from modeshift.modes.plain_data import JsonObject

# It logs what SQLite cannot do, which docs/run/operations.md says. The logger's name is private:
# no setting silences it, and no issue upstream asks for one.
_NOISY = "langgraph_api._checkpointer._adapter"
_HARMLESS = ("Slow graph load.", "Thread stream client disconnected")
"""What ``langgraph_api.graph`` says of the first load, and of each tab that is closed."""
_HUNG_UP = 499
"""The status that is logged for a request whose client has hung up."""
_NOT_BEGUN = (404, "/threads/{thread_id}/state/checkpoint")
"""``make chat`` looks at its thread, which its first message begins."""
_WITH_TRACEBACKS = ("langgraph_api.worker", "langgraph_api.errors")
_ON_GONE = (
    "langgraph_api.graph",
    "langgraph_api.server",
    "langgraph_runtime_inmem.ops",
    "uvicorn.error",
)
_SAID_TWICE = (
    "Run encountered an error in graph"  # next comes "Background run failed", with the same
)
_USER_ERROR = re.compile(r"^modeshift\.modes\.errors\.\w+: .*", re.MULTILINE)


_KIND = re.compile(r"(?:Traceback .*\n(?: .*\n)*)?([\w.]+)")
"""The class of the first error in a traceback; what follows may be the error's text."""
_VALUE = re.compile(r"(?: Exception)?: |\?")
"""What follows in a library's event may be content: an error's text, a URL's query."""
_KEPT = ("timestamp", "level", "logger", "event", "thread_id", "run_id", "langgraph_node")
_KEPT_OF_REQUESTS = ("method", "path", "status", "latency_ms")


def shorten_log(*, has_content: bool = True) -> None:
    """Set up this process's log; without ``has_content`` it has nothing that was said or read."""
    for handler in [] if has_content else logging.getLogger().handlers:
        formatter: Any = handler.formatter  # LangGraph's, of structlog
        *processors, renderer = formatter.processors
        formatter.processors = (*processors, _drop_content, renderer)
    logging.captureWarnings(not has_content)  # else they are lines of their own
    logging.getLogger(_NOISY).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", "Remove `format_exc_info`")  # of the server's own set-up
    for name in _ON_GONE:
        logging.getLogger(name).addFilter(_is_news)
    for name in _WITH_TRACEBACKS:
        logging.getLogger(name).addFilter(_drop_traceback)


def _drop_content(_: object, __: str, event: JsonObject) -> JsonObject:
    """Keep the known fields, and of an error only its class: its text may quote a file."""
    known = {key: event[key] for key in (*_KEPT, *_KEPT_OF_REQUESTS) if event.get(key) is not None}
    first = str(event.get("event", "")).partition("\n")[0]
    is_ours = event.get("logger") == "modeshift"
    known["event"] = (first if is_ours else _VALUE.split(first, 1)[0])[:300]
    if kind := _KIND.match(str(event.get("exception", "")).strip()):
        known["error"] = kind[1]
    return known


def _is_news(record: logging.LogRecord) -> bool:
    """False for what nobody needs to know, such as a tab that is closed during its request."""
    event: JsonObject = record.msg if isinstance(record.msg, dict) else {"event": record.msg}
    status = event.get("status")
    has_left = record.exc_info is not None and isinstance(record.exc_info[1], ClientDisconnect)
    is_usual = status == _HUNG_UP or (status, event.get("route")) == _NOT_BEGUN
    is_harmless = str(event.get("event", "")).startswith(_HARMLESS)
    return not (has_left or is_usual or is_harmless)


def _drop_traceback(record: logging.LogRecord) -> bool:
    """Log only the message of an error that a person can correct, once; structlog has a dict."""
    event: object = record.msg
    if isinstance(event, dict) and (match := _USER_ERROR.search(str(event.get("exception", "")))):
        event["exception"] = match[0]
        return not str(event.get("event")).startswith(_SAID_TWICE)
    return True
