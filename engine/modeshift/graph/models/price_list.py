"""What ``genai-prices`` lists of a model: its window, and its price. It comes with the package.

Imported at the first question, since it takes 0.4 s and 20 MB. Nothing is fetched: its update runs
only where somebody starts it.
"""

from decimal import Decimal
from typing import TYPE_CHECKING

from modeshift.graph.models.providers import PROVIDERS
from modeshift.graph.models.service import CacheTTL
from modeshift.graph.models.usage import NO_TOKENS, Tokens

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation


def find_listed_window(name: str) -> int | None:
    """How many tokens the model called ``provider:name`` reads at most; None if it is not known."""
    found = _look_up(name, NO_TOKENS)
    return found.model.context_window if found is not None else None


def find_listed_cost(name: str, taken: Tokens, cache_ttl: CacheTTL) -> Decimal | None:
    """What the tokens cost today, in US dollars; None if that is not known.

    Nor is it where long requests have another price, and one of them may have been so long.
    """
    found = _look_up(name, taken, cache_ttl)
    if found is None or None in (found.model_price.input_mtok, found.model_price.output_mtok):
        return None
    tiers = [getattr(price, "tiers", ()) for price in vars(found.model_price).values()]
    shortest = min((tier.start for parts in tiers for tier in parts), default=taken["input"])
    longest = min(taken["input"], found.model.context_window or taken["input"])
    return found.total_price if longest <= shortest else None


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
