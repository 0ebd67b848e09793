"""``python -m benchmarks.trace``: what counts as a hop, and how many there may be."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

from benchmarks.trace import Hop, Tracer, count, measure_ways

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
