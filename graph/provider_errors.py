"""``explained``: why a model did not answer, in words that say what to do."""

import os
import re
from typing import Any

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)

from graph.answer import BROKE_OFF
from graph.providers import PROVIDERS, RETRIES
from modes.errors import ModeshiftError, ProviderError, told
from modes.plain_text import plain

MAX_DETAIL = 600
_SECRET = re.compile(r"_(?:API_KEY|KEY|TOKEN|SECRET)$")
_TOO_LONG = re.compile(r"context.?(?:length|window)|prompt is too long|too many tokens", re.I)
_BROKEN_STREAM = frozenset({"RemoteProtocolError", "ReadError", "IncompleteRead"})


def explained(error: Exception, model: str) -> ProviderError:
    """What a person can do about ``error``, which the client of ``model`` raised.

    The text holds what the provider said, and no key.
    """
    for cause in _causes(error):
        if isinstance(cause, ModeshiftError):
            return ProviderError(str(cause))
    detail = _masked(plain(_said(error), MAX_DETAIL))
    return ProviderError(f"the model {model!r} did not answer: {_advice(error, model)}{detail}")


def _advice(error: Exception, model: str) -> str:
    """What to do, as the beginning of a text that ends with what was said."""
    if _broke_off(error):
        return f"{BROKE_OFF}: "
    if _is_too_long(error):
        return (
            "the conversation is longer than it can read; start a new thread, go on from an "
            "earlier message, or set MODEL to one that reads more: "
        )
    for kind, advice in _ADVICE.items():
        if isinstance(error, kind):
            provider = PROVIDERS.get(model.partition(":")[0])
            wait = _header(error, "retry-after")
            return advice.format(
                key=(provider and provider.key) or "the key",
                server=plain((provider and provider.address()) or "the provider", 200),
                wait=f"; it asks to wait {plain(wait, 40)} s" if wait else "",
                tried=f"tried {RETRIES + 1} times",
            )
    return ""


# A timeout is a kind of connection error to some clients, and comes first.
_ADVICE = {
    ModelAuthenticationError: "the provider does not accept {key}; set it and start again: ",
    ModelPermissionDeniedError: "the provider does not let {key} use it: ",
    ModelNotFoundError: "the provider does not know it; set MODEL to another one: ",
    ModelRateLimitError: "too many requests, or no quota left ({tried}{wait}): ",
    ModelTimeoutError: "no answer in time ({tried}): ",
    ModelAPIError: "the provider failed ({tried}); send a message to try again: ",
    ModelConnectionError: "{server} cannot be reached ({tried}): ",
}


def _is_too_long(error: Exception) -> bool:
    if isinstance(error, ContextOverflowError):
        return True
    if getattr(error, "code", None) == "context_length_exceeded":
        return True
    is_refusal = getattr(error, "status_code", None) in (400, 413)
    return is_refusal and _TOO_LONG.search(str(error)) is not None


def _broke_off(error: Exception) -> bool:
    """Whether the answer had begun."""
    return any(type(cause).__name__ in _BROKEN_STREAM for cause in _causes(error))


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found


def _said(error: Exception) -> str:
    """The provider's own words where they can be told from what its client puts around them."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    status = getattr(error, "status_code", None)
    if not isinstance(message, str) or not message:
        return told(error)
    return f"{message} ({status})" if status else message


def _header(error: Exception, name: str) -> str | None:
    headers = getattr(getattr(error, "response", None), "headers", {})
    return headers.get(name)


def _masked(text: str) -> str:
    """``text`` without the value of any variable that holds a secret: some servers repeat keys."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET.search(name):
            text = text.replace(value, f"[{name}]")
    return text
