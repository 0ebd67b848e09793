"""``make usage``: the tokens that threads have taken, and what they cost where that is known."""

import asyncio
from collections.abc import Iterator, Mapping
from decimal import Decimal
from json import dumps
from typing import NamedTuple, cast

from modeshift.configuration.databases import list_kept
from modeshift.configuration.prices import CURRENCY, Prices, load_prices
from modeshift.configuration.settings import Settings, load_settings
from modeshift.models.usage import Fill, Tokens, Usage, add_tokens
from modeshift.modes.errors import InvalidInputError
from modeshift.modes.plain_text import to_one_line
from modeshift.storage.database import Database
from modeshift.storage.threads import read_newest
from modeshift.thread import find_title

# A checkpoint holds what its thread took up to then. Where somebody went back and on from there,
# a thread has several ends; what they have in common counts once.
_QUERY = """
    SELECT thread_id, checkpoint_id, 1 - coalesce(n, 0), (
        SELECT min(checkpoint_id) FROM checkpoints AS first
        WHERE first.thread_id = checkpoints.thread_id AND checkpoint_ns = ''
    ) FROM checkpoints LEFT JOIN (
        SELECT thread_id AS thread, parent_checkpoint_id AS parent, count(*) AS n FROM checkpoints
        WHERE checkpoint_ns = '' GROUP BY thread_id, parent_checkpoint_id
    ) AS children ON thread = thread_id AND parent = checkpoint_id
    WHERE checkpoint_ns = '' AND coalesce(n, 0) != 1 AND thread_id = coalesce(:thread, thread_id)
    ORDER BY thread_id, checkpoint_id
"""
MAX_SHOWN = 60
_HEADS = ("answers", "input", "cache_read", "cache_write", "output")


class ThreadUsage(NamedTuple):
    """What one thread has taken by model; empty for a thread from before tokens were counted."""

    id: str
    title: str
    taken: dict[str, Tokens]
    turn: dict[str, Tokens]
    """What the last turn has taken."""
    last: Fill | None


def main(thread: str | None = None, *, json: bool = False) -> Iterator[str]:
    """The report, of one thread or of all; raises ``UserError``."""
    settings = load_settings()
    prices = load_prices(settings)
    threads = asyncio.run(_read_all(settings, thread))
    if thread and not threads:
        raise InvalidInputError(f"there is no thread {thread!r}; make usage lists the threads")
    total: dict[str, Tokens] = {}
    for row in threads:
        total = add_tokens(total, row.taken)
    if json:
        rows = [
            {**each._asdict(), "cost": _as_text(prices.find_cost(each.taken))} for each in threads
        ]
        all_ = {"taken": total, "cost": _as_text(_find_total(threads, prices))}
        yield dumps({"currency": CURRENCY, "threads": rows, "all": all_}, indent=2)
        return
    if total:
        yield f"{'':38}" + "".join(f"{head:>12}" for head in _HEADS)
    yield f"threads, those of editors among them: {len(threads) or 'none'}"
    yield from (line for row in threads for line in _describe(row, prices, thread is not None))
    if total:
        cost = _explain_cost(threads, prices)
        yield from ("all together", *_list_models(total), f"cost: {cost}")


async def _read_all(settings: Settings, id: str | None) -> list[ThreadUsage]:
    rows = list[ThreadUsage]()
    for file in list_kept(settings):
        async with settings.open_database(file) as database:
            await database.check()
            rows += await read_threads(database, id)
    return rows


async def read_threads(database: Database, id: str | None = None) -> list[ThreadUsage]:
    """All threads, or that with ``id``; raises ``UserError``."""
    if not await database.list_columns("checkpoints"):
        return []
    threads: dict[str, ThreadUsage] = {}
    for thread, checkpoint, times, first in await database.execute(_QUERY, thread=id):
        values = await read_newest(database, thread, checkpoint)
        usage = cast("Usage", values.get("usage", {}))
        if (known := threads.get(thread)) is None:  # its title is by what its first run was given
            begun = await read_newest(database, thread, first)
            title = to_one_line(find_title(begun.get("__start__") or {}), MAX_SHOWN)
            known = ThreadUsage(thread, title, {}, {}, None)
        taken = add_tokens(known.taken, usage.get("thread", {}), times)
        taken = add_tokens(taken, usage.get("undone", {}), -times)
        turn, last = usage.get("turn") or {}, usage.get("last")
        threads[thread] = known._replace(taken=taken, turn=turn, last=last)
    return list(threads.values())


def _as_text(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost:f}"


def _describe(thread: ThreadUsage, prices: Prices, with_turn: bool) -> Iterator[str]:
    cost = prices.find_cost(thread.taken)
    shown = "" if cost is None else f"  {cost:.4f} {CURRENCY}"
    yield f"  {to_one_line(thread.id)}  {thread.title}".rstrip() + (
        shown if thread.taken else "  nothing was counted"
    )
    yield from _list_models(thread.taken)
    if thread.last is not None and (used := thread.last["used"]) is not None:
        size = thread.last["window"]
        of = f"{size:,} ({used / size:.0%})" if size else "a size not known; set CONTEXT_WINDOW"
        yield f"    in the window: {used:,} of {of}"
    if with_turn and thread.turn:
        yield from ("    of that in the last turn:", *_list_models(thread.turn))


def _list_models(taken: dict[str, Tokens]) -> Iterator[str]:
    for model, tokens in sorted(taken.items()):
        counts = cast("Mapping[str, int]", tokens)
        yield f"    {model:34}" + "".join(f"{counts[head]:>12,}" for head in _HEADS)
        if tokens["unknown"]:
            yield f"      and {tokens['unknown']} without a count: what they took is not known"


def _find_total(threads: list[ThreadUsage], prices: Prices) -> Decimal | None:
    """The sum: a price that depends on a request's length may be known for each thread alone."""
    costs = [prices.find_cost(each.taken) for each in threads if each.taken]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal()).normalize() if known and len(known) == len(costs) else None


def _explain_cost(threads: list[ThreadUsage], prices: Prices) -> str:
    if (cost := _find_total(threads, prices)) is not None:
        return f"{cost:f} {CURRENCY}"
    models = [item for each in threads for item in each.taken.items()]
    if any(taken["unknown"] for _, taken in models):
        return "not known, because some answers came without a count"
    missing = {name for name, taken in models if prices.find_cost({name: taken}) is None}
    return f"not known; {prices.file} may give a price for {', '.join(sorted(missing))}"
