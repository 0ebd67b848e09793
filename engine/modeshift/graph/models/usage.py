"""The tokens that a thread has taken, by model, and how full the window of the last one was.

The only module that adds tokens up. The numbers are the providers' own; an answer that came
without any is counted as unknown, and never as one that took nothing.
"""

from typing import cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

_WRITES = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


class Tokens(TypedDict):
    """What the answers of one model took."""

    answers: int
    """How many said what they took."""
    unknown: int
    """How many did not; the sums are without these."""
    input: int
    """All of it, that from the cache and that written to it among it."""
    output: int
    cache_read: int
    cache_write: int


NO_TOKENS = Tokens(answers=0, unknown=0, input=0, output=0, cache_read=0, cache_write=0)


class Fill(TypedDict):
    """How much of a model's window the last request and its answer took; None where unknown."""

    model: str
    used: int | None
    window: int | None


class Usage(TypedDict, total=False):
    """What a thread has taken; as an update, what is added to that."""

    thread: dict[str, Tokens]
    """By the model's name, as the user wrote it."""
    turn: dict[str, Tokens] | None
    """Of it, what the last turn took; None, which is only in updates, begins a turn."""
    last: Fill | None
    """As of the last answer; None after a compaction, until the next one."""


NEW_TURN = Usage(turn=None)
NO_FILL = Usage(last=None)
"""The update after what the last answer was given to has been replaced by something shorter."""


def find_window(model: BaseChatModel) -> int | None:
    """How many tokens the model reads at most: as set for Ollama, or by LangChain's table."""
    found = getattr(model, "num_ctx", None) or (model.profile or {}).get("max_input_tokens")
    return found if isinstance(found, int) and found > 0 else None


def count_answer(answer: AIMessage, model: str, window: int | None) -> Usage:
    """The update for one answer of ``model``, the name that the user wrote."""
    given = answer.usage_metadata
    counts = (given["input_tokens"], given["output_tokens"]) if given is not None else (0, 0)
    # LangChain makes zeros of missing numbers, and takes whatever a server calls one.
    if given is None or not all(isinstance(one, int) for one in counts) or counts[0] <= 0:
        taken = Tokens({**NO_TOKENS, "unknown": 1})
        used = None
    else:
        details = {
            # OpenAI's service tiers are put before these names.
            key.removeprefix("priority_").removeprefix("flex_"): value
            for key, value in given.get("input_token_details", {}).items()
            if isinstance(value, int)
        }
        taken = Tokens(
            answers=1,
            unknown=0,
            input=given["input_tokens"],
            output=given["output_tokens"],
            cache_read=details.get("cache_read", 0),
            cache_write=sum(details.get(key, 0) for key in _WRITES),
        )
        used = given["input_tokens"] + given["output_tokens"]
    fill = Fill(model=model, used=used, window=window)
    return Usage(thread={model: taken}, turn={model: taken}, last=fill)


def add_usage(before: Usage, more: Usage) -> Usage:
    """A reducer: ``before`` with what is ``more``; ``last`` is replaced, if it is given."""
    turn = more.get("turn", {})
    return {
        **before,
        **more,
        "thread": add_tokens(before.get("thread", {}), more.get("thread", {})),
        "turn": {} if turn is None else add_tokens(before.get("turn") or {}, turn),
    }


def add_tokens(
    before: dict[str, Tokens], more: dict[str, Tokens], times: int = 1
) -> dict[str, Tokens]:
    """``before`` and, ``times`` over, ``more``; by model."""
    added = {key: _add(before.get(key, NO_TOKENS), one, times) for key, one in more.items()}
    return before | added


def _add(one: Tokens, other: Tokens, times: int) -> Tokens:
    more = cast("dict[str, int]", other)
    added = {key: have + times * more[key] for key, have in cast("dict[str, int]", one).items()}
    return cast("Tokens", added)
