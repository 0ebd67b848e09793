"""``check_agent``: tries whether a clone's graph keeps what the engine promises."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from modeshift.modes.errors import NodeError
from modeshift.testing.agent import judge_call
from modeshift.testing.trial import SECONDS, Build, Trial, expect
from modeshift.testing.walk import WALKS, walk


def check_agent(build: Build) -> None:
    """Try the graph that ``build`` makes, in each of the clone's modes, with a scripted model.

    Then say, decide, set modes and start anew at random, the same in each run. Raises
    ``AssertionError`` that names what is open: a call that runs though the mode denies it, nobody
    has approved it or a person has rejected it, or once more after a cancel; a switch that nobody
    has said yes to; a model that is offered the tools of another mode.
    """

    async def check(folder: Path) -> None:
        await _check(build, folder)
        for seed in range(WALKS):
            await named(f"in random walk {seed}", walk(Trial(build, folder), seed))

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def _check(build: Build, folder: Path) -> None:
    first = Trial(build, folder)
    modes = [*first.deps.catalog]
    for mode in modes:
        for probe in first.probes:
            await named(f"in {mode} mode, {probe}", _try_call(build, folder, mode, probe))
        for switch in first.switches:
            for target in modes:
                if target != mode:
                    where = f"in {mode} mode, {switch} to {target}"
                    await named(where, _try_switch(build, folder, switch, mode, target))


async def named(where: str, trial: Any) -> None:
    """Await the trial; what it raises says where."""
    try:
        await trial
    except NodeError as error:
        raise AssertionError(f"{where}: {error}") from error
    except AssertionError as error:
        raise AssertionError(f"{where} {error}") from None


async def _try_call(build: Build, folder: Path, mode: str, probe: str) -> None:
    call = probe, {"path": "probe.md"}
    talk = Trial(build, folder, call)
    verdict = (await judge_call(talk.agent, mode, *call)).kind
    await talk.say("go", mode=mode)
    if verdict != "allow":
        expect(not talk.ran, f"runs although {_WHY[verdict]}")
    await talk.answer("reject")
    if verdict != "allow":
        expect(not talk.ran, "runs although it is rejected, or denied")
    if verdict != "deny":
        talk = Trial(build, folder, call)
        await talk.say("go", mode=mode)
        was_asked = await talk.answer("approve")
        expect(was_asked == (verdict == "ask"), f"is {'' if was_asked else 'not '}asked about")
        expect(len(talk.ran) == 1, f"runs {len(talk.ran)} times once it is approved")
        await _try_cut_off(Trial(build, folder, call), mode)


_WHY = {"deny": "the mode denies it", "ask": "nobody has approved it"}
_SAYS = {"deny": "the mode denies it", "ask": "nobody has said yes"}


async def _try_cut_off(talk: Trial, mode: str) -> None:
    async def go() -> None:
        await talk.say("go", mode=mode)
        await talk.answer("approve")

    talk.hangs = True
    run = asyncio.create_task(go())
    async with asyncio.timeout(SECONDS):
        while not talk.ran and not run.done():  # noqa: ASYNC110  # the probe is of another graph
            await asyncio.sleep(0.01)
    run.cancel()
    await asyncio.wait({run})
    talk.hangs = False
    await talk.send(None)
    await talk.answer("approve")
    expect(len(talk.ran) == 1, "runs once more after it was cut off by a cancel")


async def _try_switch(build: Build, folder: Path, name: str, mode: str, target: str) -> None:
    call = name, {"mode_slug": target, "reason": "a check"}
    verdict = await judge_call(Trial(build, folder).agent, mode, *call)
    before, most = mode, mode if verdict.kind == "deny" else target
    if verdict.is_by_edge:
        before = target
    for decision, after in (("reject", before), ("approve", most)):
        talk = Trial(build, folder, call)
        await talk.say("go", mode=mode)
        holds = await talk.mode() == before
        why = "nobody need be asked" if verdict.is_by_edge else _SAYS[verdict.kind]
        expect(holds, f"takes {'no ' * verdict.is_by_edge}effect although {why}")
        await talk.check_tools()
        await talk.answer(decision)
        holds = await talk.mode() == after
        expect(holds, f"leads to {await talk.mode()} mode after {decision!r}")
        await named(f"after {decision!r}", talk.check_tools())
