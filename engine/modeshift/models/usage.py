"""What ``genai-prices`` lists of a model: its window, and its price. It comes with the package.

Imported at the first question, since it takes 0.4 s and 20 MB. Nothing is fetched: its update runs
only where somebody starts it.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, cast

from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from modeshift.models.providers import PROVIDERS
from modeshift.models.service import CacheTTL

_WRITES = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


class Tokens(TypedDict):
    """The tokens that the answers of one model took."""

    answers: int
    """How many answers said what they took."""
    unknown: int
    """How many answers did not; the sums leave them out."""
    input: int
    """All input, with what was read from the cache and what was written to it."""
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
    """What was taken in all, by the model's name, as the user wrote it."""
    turn: dict[str, Tokens] | None
    """What the last turn took of it; None, which is only in updates, begins a turn."""
    undone: dict[str, Tokens]
    """What it took of that in branches that an undo has left, whose checkpoints have it, too."""
    allowed: dict[str, str]
    """By ``turn`` and ``thread``, how much a person has allowed beyond the ceiling there is."""
    last: Fill | None
    """How full the window was at the last answer; None after a compaction, until the next one."""


NEW_TURN = Usage(turn=None)
NO_FILL = Usage(last=None)
"""The update after a compaction: how full the window is will be known at the next answer."""


def count_answer(answer: AIMessage, model: str, window: int | None) -> Usage:
    """The update for one answer of ``model``, the name that the user wrote."""
    usage = answer.usage_metadata
    counts = (usage["input_tokens"], usage["output_tokens"]) if usage is not None else (0, 0)
    # LangChain makes zeros of missing numbers, and takes whatever a server calls one.
    if usage is None or not all(isinstance(count, int) for count in counts) or counts[0] <= 0:
        taken = Tokens({**NO_TOKENS, "unknown": 1})
        used = None
    else:
        details = {
            # OpenAI's service tiers are put before these names.
            key.removeprefix("priority_").removeprefix("flex_"): value
            for key, value in usage.get("input_token_details", {}).items()
            if isinstance(value, int)
        }
        taken = Tokens(
            answers=1,
            unknown=0,
            input=usage["input_tokens"],
            output=usage["output_tokens"],
            cache_read=details.get("cache_read", 0),
            cache_write=sum(details.get(key, 0) for key in _WRITES),
        )
        used = usage["input_tokens"] + usage["output_tokens"]
    fill = Fill(model=model, used=used, window=window)
    return Usage(thread={model: taken}, turn={model: taken}, last=fill)


def add_usage(before: Usage, more: Usage) -> Usage:
    """A reducer: ``before`` with what is ``more``; ``last`` is replaced, if it is given."""
    turn = more.get("turn", {})
    allowed = {**before.get("allowed", {}), **more.get("allowed", {})}
    if turn is None:
        allowed.pop("turn", None)
    return {
        **before,
        **more,
        **({"allowed": allowed} if "allowed" in {**before, **more} else {}),
        "thread": add_tokens(before.get("thread", {}), more.get("thread", {})),
        "turn": {} if turn is None else add_tokens(before.get("turn") or {}, turn),
    }


def add_tokens(
    before: dict[str, Tokens], more: dict[str, Tokens], times: int = 1
) -> dict[str, Tokens]:
    """``before`` and, ``times`` over, ``more``; by model."""
    added = {key: _add(before.get(key, NO_TOKENS), tokens, times) for key, tokens in more.items()}
    return before | added


def _add(tokens: Tokens, other: Tokens, times: int) -> Tokens:
    more = cast("dict[str, int]", other)
    added = {key: have + times * more[key] for key, have in cast("dict[str, int]", tokens).items()}
    return cast("Tokens", added)


if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation


def find_listed_window(name: str) -> int | None:
    """How many tokens the model called ``provider:name`` reads at most; None if it is not known."""
    price = _look_up(name, NO_TOKENS)
    return price.model.context_window if price is not None else None


def find_listed_cost(name: str, taken: Tokens, cache_ttl: CacheTTL) -> Decimal | None:
    """What the tokens cost today, in US dollars; None if that is not known.

    Nor is it where long requests have another price, and one of them may have been so long.
    """
    quote = _look_up(name, taken, cache_ttl)
    if quote is None or None in (quote.model_price.input_mtok, quote.model_price.output_mtok):
        return None
    tiers = [getattr(price, "tiers", ()) for price in vars(quote.model_price).values()]
    shortest = min((tier.start for parts in tiers for tier in parts), default=taken["input"])
    longest = min(taken["input"], quote.model.context_window or taken["input"])
    return quote.total_price if longest <= shortest else None


def _look_up(name: str, taken: Tokens, cache_ttl: CacheTTL = "5m") -> "PriceCalculation | None":
    provider, _, model = name.partition(":")
    address = known.address() if (known := PROVIDERS.get(provider)) is not None else None
    # A server of one's own has no price, and whatever models it likes.
    if not model or provider == "ollama" or (address and not address.startswith("https://")):
        return None
    from genai_prices import Usage, calc_price  # noqa: PLC0415

    usage = Usage(
        input_tokens=taken["input"],
        output_tokens=taken["output"],
        cache_read_tokens=taken["cache_read"],
        cache_write_tokens=taken["cache_write"],
        cache_write_1h_tokens=taken["cache_write"] if cache_ttl == "1h" else 0,
    )
    try:
        if address:
            return calc_price(usage, model, provider_api_url=address)
        return calc_price(usage, model, provider_id=provider)
    except (LookupError, ValueError):  # ValueError: more from the cache than there was
        return None
