"""The figures of docs/figures.md: how they are counted, and how many hops there may be."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

from benchmarks.stats import PAGE, find_groups, find_levels, measure, read_released, with_figures
from benchmarks.trace import Hop, Tracer, count, measure_ways
from tests.harness.root import ENGINE

MOST = 1.12
"""A tenth, and two hundredths until the next release: an approved plan and undo came on top."""
TOLERANCE = 0.03
"""So that not every commit has to write them."""


def test_the_figures_are_not_far_off() -> None:
    page = (ENGINE / PAGE).read_text(encoding="utf-8")
    figures = dict(measure(ENGINE))
    now = with_figures(page, figures)
    rows = {line.split(" | ")[0]: line for line in page.splitlines() if line.startswith("| ")}
    for what, figure in figures.items():
        shown = int(rows[f"| {what}"].split(" | ")[-1].strip("| ").replace(",", ""))
        is_near = abs(shown - figure) <= max(1, figure * TOLERANCE)
        assert is_near, f"{PAGE} says {shown} {what}, and there are {figure}: run `make renew`"
    assert with_figures(now, figures) == now
    what = "lines of product code"
    assert figures[what] <= MOST * read_released(page, what), "much larger than the last release"


def test_levels_and_circles() -> None:
    chain = {"a": frozenset("b"), "b": frozenset("cd"), "c": frozenset("d"), "d": frozenset[str]()}
    assert find_levels(chain) == {"a": 4, "b": 3, "c": 2, "d": 1}
    circle = {**chain, "d": frozenset("c")}
    assert find_levels(circle) == {"a": 3, "b": 2, "c": 1, "d": 1}
    assert {group for group in find_groups(circle).values() if len(group) > 1} == {frozenset("cd")}


LAST_RELEASE = {
    "`act` of one read_file": 45,
    "a turn with one read": 179,
    "an approved switch to the next question": 199,
}
"""Hops. A tenth more is a reason to look where they come from."""


def _make_module(name: str, source: str, **more: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(more)
    exec(source, vars(module))  # noqa: S102  # functions of a module that is named so
    return module


def test_what_a_hop_is() -> None:
    below = _make_module("modeshift.below", "async def wait():\n    await sleep(0)\ndef end(): 0")
    below.sleep = asyncio.sleep  # type: ignore[attr-defined]  # a coroutine that goes on
    source = "async def go():\n    await below.wait()\n    stay()\n    below.end()\ndef stay(): 0"
    above = _make_module("modeshift.above", source, below=below)
    tracer = Tracer()
    with tracer.installed(), tracer.on():
        asyncio.run(above.go())
        with ThreadPoolExecutor() as pool:
            pool.submit(lambda: asyncio.run(above.go())).result()
    hops = [Hop("modeshift.above", "modeshift.below", name) for name in ("wait", "end")]
    assert tracer.hops == hops * 2
    assert count(tracer.hops) == (2, 4, 3)


def test_the_ways_stay_short() -> None:
    hops = {what: count(way).hops for what, way in measure_ways().items()}
    most = {what: last * 1.1 for what, last in LAST_RELEASE.items()}
    assert {what: limit for what, limit in most.items() if not 0 < hops[what] <= limit} == {}, hops
