"""``provider_error``: why a model did not answer, and what a person can do about it."""

import os
import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.messages import AIMessage, ToolCall

from modeshift.messages.normal_form import explain_bad_json, mark_broken
from modeshift.messages.repair import BROKE_OFF
from modeshift.models.providers import PROVIDERS
from modeshift.modes.errors import (
    ModeshiftError,
    ProviderError,
    RefusedKeyError,
    TooLongError,
    describe_error,
)
from modeshift.modes.plain_text import to_one_line

MASK = "[masked]"
MIN_LENGTH = 8
_NAMES = re.compile(
    r"(?i)(?:keys?|tokens?|secrets?|passw(?:or)?ds?|credentials?|_(?:pass|pats?|pwd|auth))(?:_\d+)?$"
)
_IN_URL = re.compile(r"://[^/:@\s]*:([^/@\s]+)@")
# Secrets with a format of their own. Most need a digit, so that no_word_of_this_kind matches.
_LOOKS = re.compile(
    r"""
    \b(?:sk|pk|rk)-(?=[\w-]*\d)[\w-]{16,}          # OpenAI, Anthropic, OpenRouter, DeepSeek
    | \b(?:gsk_|xai-|pplx-|nvapi-|csk-|hf_)[\w-]{20,} | \b(?:r8|fw)_(?=\w*\d)\w{20,}
    | \b(?:lsv2_(?:pt|sk)|pcsk|(?:sk|rk|pk)_(?:live|test)|sk|whsec|ntn)_(?=\w*\d)\w{20,}
    | \btvly-(?=[\w-]*\d)[\w-]{16,} | \bkey-[0-9a-f]{32}\b | \b[0-9a-f]{32}-us\d{1,2}\b
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*
    | \b(?:org|user)-(?=[A-Za-z]*\d)[A-Za-z0-9]{16,} # OpenAI's organisations
    | \b(?:proj|req)_(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{20,}
    | \bA(?:KIA|SIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30,} | \bGOCSPX-[\w-]{20,} | \bya29\.[\w-]{20,}
    | \bxox[a-z]-[\w-]{10,} | \bNRAK-[0-9A-Z]{20,} | \b\d{8,10}:AA[\w-]{32,}
    | \b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}     # Discord
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+            # a JSON web token
    | \b[Bb]earer\ [\w.~+/-]{8,} | \b[Bb]asic\ (?=[\w+/]*[A-Z0-9=])[\w+/=]{8,}
    """,
    re.VERBOSE,
)
# A value whose name says that it is a secret: in a URL, a header, an assignment.
_SAID = re.compile(
    r"""
    (?<=://) [^\s/:@]* : (?P<url>[^\s/@]{3,}) @
    | (?i:[?&](?:[\w-]*(?:key|token|secret|passw(?:or)?d|pwd)|sig|auth)=)(?P<query>[^\s&\#"'<>]{8,})
    | (?i:(?<![\w-])[\w-]*(?:api[_-]?key|access[_-]?key|account[_-]?key|auth[_-]?token
        |access[_-]?token|secret(?:[_-]?(?:access)?[_-]?key)?|passw(?:or)?d|_pwd|_pat))
      ["']?(?:\s*[:=]\s*|\s+(?=[\w/+-]*\d))["']?
      (?P<assigned>(?=[^\s"',;]*\d|(?:[^\s"',;]*?[a-z][A-Z]){3})[^\s"',;&<>(){}\[\]]{8,})
    """,
    re.VERBOSE,
)


def mask_secrets(text: str, known: tuple[str, ...] = ()) -> str:
    """``text`` without what looks like a secret, and without the ``known`` secrets."""
    for secret in known:
        text = text.replace(secret, MASK)
    return _SAID.sub(_mask_value, _LOOKS.sub(MASK, text))


def _mask_value(match: re.Match[str]) -> str:
    start, end = match.span(str(match.lastgroup))
    return match[0][: start - match.start()] + MASK + match[0][end - match.start() :]


def find_secrets() -> tuple[str, ...]:
    """The secrets in the environment, the longest first; a list counts as several secrets."""
    secrets = {
        part.strip()
        for name, value in os.environ.items()
        if _NAMES.search(name)
        for part in (value, *re.split(r"[,:\s]", value))
    }
    secrets |= {secret for value in os.environ.values() for secret in _IN_URL.findall(value)}
    secrets = {secret for secret in secrets if len(secret) >= MIN_LENGTH}
    # In base64 the last characters depend on what follows the secret.
    secrets |= {b64encode(secret.encode()[: len(secret) // 3 * 3]).decode() for secret in secrets}
    secrets |= {quote(secret, safe="") for secret in secrets}
    return tuple(sorted(secrets, key=len, reverse=True))


TRIES = 3
LONGEST_WAIT = 60.0
"""Seconds; a provider that wants a longer wait is not asked again."""
MAX_DETAIL = 600
MAX_READ = 20_000
"""Characters of an error in which secrets are looked for; no more than these are shown."""
_TOO_LONG = re.compile(
    "|".join(
        (
            r"context.?(?:length|window|size|limit)",
            r"(?:prompt|input|request|conversation) (?:is )?too (?:long|large)",
            r"too many (?:input )?tokens",
            r"request_too_large|too large for model|model token limit",
            r"exceeds the maximum (?:size|allowed)|exceeds? max(?:imum)? (?:length|prompt)",
            r"maximum (?:number of tokens|prompt length)|range of input length",
            r"reduce the length of the",
        )
    ),
    re.I,
)
_REFUSED_CALL = "tool_use_failed"
"""Groq's code for a call that it could not read."""
_FILTERED = "content_filter"
_IN_TEMPLATE = re.compile(r"While executing \w+ at line \d+|roles must alternate", re.I)
_ANOTHER_TEMPLATE = (
    "the model's chat template takes no such conversation; start the server with another template "
    "or model, or start a new thread"
)
_LOADING = re.compile(r"loading model|model is loading", re.I)
_UNCLASSIFIED: dict[str, type[ModelError]] = {
    **dict.fromkeys(
        ("ConnectError", "ConnectTimeout", "RemoteProtocolError", "ReadError"), ModelConnectionError
    ),
    **dict.fromkeys(("ReadTimeout", "TimeoutError"), ModelTimeoutError),
    "401": ModelAuthenticationError,
    "403": ModelPermissionDeniedError,
    "404": ModelNotFoundError,
    "408": ModelTimeoutError,
    "429": ModelRateLimitError,
    **dict.fromkeys(("500", "502", "503", "504", "529"), ModelAPIError),
}
"""Errors of clients that do not use LangChain's classes, such as Ollama's and Groq's: by class name
or HTTP status."""


def is_refused(error: Exception) -> bool:
    """Whether the request itself was refused, so that sending it again cannot help.

    OpenRouter has a 404 for an image that none of a model's services takes. llama.cpp has a 500 for
    what some chat templates refuse.
    """
    if getattr(error, "status_code", None) in (400, 404, 413, 422):
        return True
    return read_template_error(error) is not None


def is_refused_unexplained(error: Exception) -> bool:
    """Whether the request was refused for something in it, and nothing here says for what."""
    if read_template_error(error) is not None:
        return True
    if getattr(error, "status_code", None) not in (400, 422) or _is_too_long(error):
        return False
    return _find_kind(error) is None and getattr(error, "code", None) != _FILTERED


def is_worth_another_try(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    if read_template_error(error) is not None:
        return False
    if isinstance(error, ModelError):
        return error.is_retryable and getattr(error, "code", None) != "insufficient_quota"
    kind = _classify(error)
    return kind is not None and kind.is_retryable


def _classify(error: Exception) -> type[ModelError] | None:
    """The kind of an error whose class is not LangChain's; None if it is not known.

    By the HTTP status, or the one that some services put in the error of a whole answer.
    """
    response = getattr(error, "response", None)
    statuses = (getattr(source, "status_code", None) for source in (error, response))
    status = next(filter(None, statuses), None) or getattr(error, "code", None)
    return _UNCLASSIFIED.get(type(error).__name__) or _UNCLASSIFIED.get(str(status))


def read_template_error(error: Exception) -> str | None:
    """What the model's chat template has raised, without llama.cpp's words around it.

    None for other errors.
    """
    said = _said(error)
    if not _IN_TEMPLATE.search(said):
        return None
    return said.rpartition("\nError: ")[2].removeprefix("Jinja Exception: ")


def read_refused_call(error: Exception) -> AIMessage | None:
    """The call that the service refused because it could not read it; None for other errors.

    It counts as the model's answer: the call does not run, and the model is told why.
    """
    body = getattr(error, "body", None)
    if not isinstance(body, dict) or body.get("code") != _REFUSED_CALL:
        return None
    text = str(body.get("failed_generation") or body.get("message") or "")
    name = _CALLED.search(text)
    call = ToolCall(name=name[1] if name else "unknown", args={}, id=None)
    return AIMessage("", tool_calls=[mark_broken(call, explain_bad_json(text))])


_CALLED = re.compile(r'(?:function=|"name":\s*")([\w-]+)')


def read_retry_after(error: Exception) -> float | None:
    """The seconds in ``retry-after``; None if it does not hold a number."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    after, unit = headers.get("retry-after-ms"), 1000
    if after is None:
        after, unit = headers.get("retry-after", ""), 1
    try:
        seconds = float(after) / unit
    except ValueError:
        return None
    return max(seconds, 0) if seconds == seconds else None  # noqa: PLR0124  # nan


def provider_error(error: Exception, model: str, tries: int, *, has_begun: bool) -> ProviderError:
    """Explain ``error``, the last one that the client of ``model`` raised.

    Includes what the provider said, with keys masked. ``has_begun``: a part of the answer came.
    """
    for cause in _causes(error):
        if isinstance(cause, ModeshiftError):
            return ProviderError(str(cause))
    raised = read_template_error(error)
    said = mask_secrets((raised or _said(error))[:MAX_READ], find_secrets())
    detail = to_one_line(said, MAX_DETAIL)
    if raised is not None:
        return ProviderError(f"the model {model!r} did not answer: {detail}: {_ANOTHER_TEMPLATE}")
    advice = _advice(error, model, has_begun=has_begun)
    times = f" (tried {tries} times)" if tries > 1 else ""
    kind = ProviderError
    if _is_too_long(error) and not has_begun:
        kind = TooLongError
    elif _find_kind(error) in (ModelAuthenticationError, ModelPermissionDeniedError):
        kind = RefusedKeyError
    return kind(f"the model {model!r} did not answer{times}: {advice}{detail}")


def _advice(error: Exception, model: str, *, has_begun: bool) -> str:
    """What to do, as the beginning of a text that ends with the provider's own words."""
    provider = PROVIDERS.get(model.partition(":")[0])
    address = provider.address() if provider is not None else None
    if _is_too_long(error):
        larger = "start the server with a larger window, " if address else ""
        return (
            "the conversation is longer than it can read; start a new thread, go on from an "
            f"earlier message, {larger}or set MODEL to one that reads more: "
        )
    if has_begun:
        return f"{BROKE_OFF}: "
    if getattr(error, "code", None) == _FILTERED:
        return (
            "the provider's content filter stopped the conversation; go on from an earlier "
            "message, or say it in other words: "
        )
    kind = _find_kind(error)
    variable = provider.addresses[-1] if provider is not None and provider.addresses else ""
    if kind is None:
        is_unread = isinstance(error, ValueError | TypeError | AttributeError)
        sent = f"what {address} sent is no answer; check {variable}: "
        return (sent if is_unread else f"at {address}: ") if address else ""
    if kind is ModelAPIError and _LOADING.search(str(error)):
        return "the server is still loading it; send a message when it is ready: "
    wait = read_retry_after(error)
    server = address or (provider and provider.default_address)
    return _ADVICE[kind].format(
        key=(provider and provider.key) or "the key",
        server=server or "the provider",
        reach=f"start it, or check {variable}" if server else "check the network",
        where=f", and whether {variable}={address} ends as the server expects" if address else "",
        wait=f"; it asks to wait {wait:g} s" if wait else "",
    )


def _find_kind(error: Exception) -> type[Exception] | None:
    kind = next((kind for kind in _ADVICE if isinstance(error, kind)), None) or _classify(error)
    if kind is None and getattr(error, "code", None) == "model_not_found":
        return ModelNotFoundError  # the Responses API answers 400
    return kind


# A timeout is first, because to some clients it is a kind of connection error.
_ADVICE: dict[type[Exception], str] = {
    ModelAuthenticationError: "the provider does not accept {key}; set it and start again: ",
    ModelPermissionDeniedError: "the provider does not let {key} use it: ",
    ModelNotFoundError: "the provider does not know it; check that MODEL is right{where}: ",
    ModelRateLimitError: "too many requests, or no quota left{wait}: ",
    ModelTimeoutError: "no answer in time; send a message to try again: ",
    ModelAPIError: "the provider failed; send a message to try again: ",
    ModelConnectionError: "{server} cannot be reached; {reach}, and send a message to try again: ",
}


def _is_too_long(error: Exception) -> bool:
    if isinstance(error, ContextOverflowError):
        return True
    if getattr(error, "code", None) == "context_length_exceeded":
        return True
    # An error in the middle of a stream has the stream's status.
    may_be = getattr(error, "status_code", 400) in (200, 400, 413, 422)
    return may_be and _TOO_LONG.search(str(error)) is not None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        seen.append(cause)
        yield cause
        cause = cause.__cause__ or cause.__context__


def _said(error: Exception) -> str:
    """The provider's own words, without what its client puts around them if that is possible."""
    bodies = (getattr(each, name, None) for each in _causes(error) for name in ("body", "details"))
    words = next(filter(None, (" ".join(_read_words(body)) for body in bodies)), "")
    status = getattr(error, "status_code", None)
    if not words:
        return describe_error(error)
    return f"{words} ({status})" if status else words


def _read_words(body: object) -> Iterator[str]:
    match body:
        case str():
            yield body
        case [*several]:
            for part in several:
                yield from _read_words(part)
        case {"error": {"message": _} | str() as inner}:
            yield from _read_words(inner)
        case {"message": str(message), **more}:
            yield message
            match more:
                case {"metadata": {"raw": str(raw)}}:  # OpenRouter's, of the service behind it
                    yield raw
        case {"detail": detail}:
            yield from _read_words(detail)
        case {"msg": str(message)}:
            yield message
