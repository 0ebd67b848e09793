"""``check_agent``: tries whether a clone's graph keeps what the engine promises."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from typing_extensions import override

from modeshift.models.loading import Models
from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import NodeError
from modeshift.modes.plain_data import JsonObject
from modeshift.project import load_project
from modeshift.testing.agent import load_modes
from modeshift.testing.conversation import Build, Conversation, judge_call
from modeshift.testing.scripted import Call, ScriptedModel, calling
from modeshift.thread import APPROVE, REJECT, edit
from modeshift.threads.compiled import Agent
from modeshift.threads.deps import AgentDeps
from modeshift.tools.tool import Tool
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace

WALKS = 8
MOVES = 8
SECONDS = 30
"""How long a turn may take."""
MAX_QUESTIONS = 10
FILES_CHANGED = "files_changed"
"""The fact that is true after each call of a probe."""


class Trial(Conversation):
    """A thread of the graph, with tools that note what they are called with."""

    def __init__(self, build: Build, folder: Path, *calls: Call) -> None:
        """The model makes each of the calls in a message of its own."""
        self.ran: list[str] = []
        self.hangs = False
        self._build, self._folder = build, folder
        model = ScriptedModel.of(*([call] for call in calls))
        self._saver = InMemorySaver()
        super().__init__(self._make(model), model=model)

    def _make(self, model: ScriptedModel) -> Agent:
        loaded = load_modes().catalog
        # Where a mode leads after its turns would hide where a switch has led.
        modes = (mode.model_copy(update={"then": None}) for mode in loaded.values())
        catalog = Catalog(modes, loaded.default)

        async def probe(path: str) -> str:
            """Change a file."""
            self.ran.append(path)
            if self.hangs:
                await asyncio.Event().wait()
            return f"changed {path}"

        toolbox = build_toolbox(Workspace(self._folder), catalog)
        probes = []
        for group in (group for group in load_project().groups if group != "mcp"):
            probe.__name__ = f"probe_{group.replace('-', '_')}"
            probes.append(Tool.of(probe, "edit", paths=("path",)).in_group(group))
        self.probes = [tool.spec.name for tool in probes]
        self.deps = AgentDeps(catalog, toolbox.with_tools(probes), Models(model))
        self.switches = [
            spec.name
            for spec in toolbox.specs
            if spec.effect.switches_mode and not spec.effect.starts_subtask
        ]
        self.calls = {*self.probes, *self.switches}
        return self._build(self.deps, self._saver)

    def restart(self) -> None:
        """Go on with the thread in another agent, as a process does that has taken over."""
        self.agent = self._make(self.model)

    @override
    async def send(self, input: object) -> None:
        async with asyncio.timeout(SECONDS):
            await super().send(input)

    async def asks_its_own(self) -> bool:
        """Whether a clone's own question waits: the model may not have been asked yet."""
        names = {request["name"] for request in await self.waiting()}
        return bool(names) and names.isdisjoint(self.calls)

    async def answer(self, decision: str) -> bool:
        """Answer until nothing waits, a clone's own question with yes; whether there was any."""
        was_asked = False
        for _ in range(MAX_QUESTIONS):
            if not (names := [request["name"] for request in await self.waiting()]):
                break
            was_asked |= not self.calls.isdisjoint(names)
            kinds = [decision if name in self.calls else "approve" for name in names]
            await self.decide(*({"type": kind} for kind in kinds))
        return was_asked

    async def check_tools(self) -> None:
        """Raise ``AssertionError`` unless the model was last offered the tools of the mode."""
        if await self.asks_its_own():
            return
        values = await self.values()
        seat = self.deps.seat_in(values, values["mode"])
        wrong = self.model.asked[-1].tools ^ {*seat.model.names}
        expect(not wrong, f"the model has the tools of another mode: {', '.join(sorted(wrong))}")

    async def check_facts(self) -> None:
        """Raise ``AssertionError`` unless the facts say that a probe has run in the mode."""
        facts = (await self.values()).get("facts", {})
        holds = FILES_CHANGED in facts.get("mode", ())
        expect(holds, f"has run, or may have, and no fact says so: {FILES_CHANGED}")


def expect(holds: object, otherwise: str) -> None:
    """Raise ``AssertionError`` unless it holds."""
    if not holds:
        raise AssertionError(otherwise)


class _Walk:
    """Does what a model, a person and a host could do, and notes what may follow from it."""

    def __init__(self, trial: Trial, random: Random) -> None:
        self.trial = trial
        self.random = random
        self.modes = [*trial.deps.catalog]
        self.mode = trial.deps.catalog.default
        self.targets: set[str] = set()
        """The modes that a person or the host has chosen in this move."""
        self.written: dict[str, tuple[str, int]] = {}
        """By the path that a probe would change: the probe, and the number of its answer."""
        self.approved: set[str] = set()
        self.seen = 0
        self.changes = 0
        """How many changes of mode there were."""

    def choose_calls(self, number: int) -> list[Call]:
        calls: list[Call] = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            name = self.random.choice([*self.trial.probes, *self.trial.switches, "no_such_tool"])
            if name in self.trial.switches:
                target = self.random.choice([*self.modes, "no-such-mode"])
                calls.append((name, {"mode_slug": target, "reason": "a walk"}))
                continue
            path = f"{len(self.written)}.md"
            if name in self.trial.probes:
                self.written[path] = name, number
            calls.append((name, {"path": path}))
        return calls

    async def say(self) -> None:
        model, host = self.trial.model, dict[str, str]()
        first = len(model.asked)
        numbers = range(first, first + self.random.choice([1, 2, 3]))
        earlier = [AIMessage("done")] * first  # the answers that were given, or left out
        model.answers[:] = earlier + [
            calling(*self.choose_calls(number), prefix=f"walk{number}") for number in numbers
        ]
        if self.random.random() < 0.3:
            host["mode"] = self.random.choice(self.modes)
            self.targets.add(host["mode"])
        await self.trial.say("go", **host)

    def decide(self, request: JsonObject) -> dict[str, object]:
        name, args = request["name"], request["args"]
        decision = self.random.choice(["approve", "approve", "reject", "edit"])
        if name not in self.trial.calls:
            return APPROVE  # a question of the clone's own
        if decision == "reject":
            return {**REJECT, "message": "no"}
        if name in self.trial.switches:
            target = args["mode_slug"] if decision == "approve" else self.random.choice(self.modes)
            self.targets.add(target)
            return APPROVE if decision == "approve" else edit(name, **{**args, "mode_slug": target})
        path = args["path"]
        if decision == "edit":
            self.written[f"e{path}"] = self.written[path]
            path = f"e{path}"
        self.approved.add(path)
        return APPROVE if decision == "approve" else edit(name, path=path)

    async def move(self) -> None:
        waiting = await self.trial.waiting()
        if waiting and self.random.random() < 0.8:
            await self.trial.decide(*map(self.decide, waiting))
        elif self.trial.model.asked and self.random.random() < 0.3:
            self.trial.restart()
        else:
            await self.say()

    async def check(self) -> None:
        trial = self.trial
        fresh, self.seen = trial.ran[self.seen :], len(trial.ran)
        expect(len({*trial.ran}) == len(trial.ran), f"a call runs twice: {fresh}")
        for path in fresh:
            probe, number = self.written[path]
            tools = trial.model.asked[number].tools
            expect(probe in tools, f"{probe} runs although the mode does not have it")
            may_run = path in self.approved or await self.is_allowed(probe, tools)
            expect(may_run, f"{probe} runs although nobody has approved it")
        mode = await trial.mode()
        chosen = {self.mode, *self.targets}
        holds = mode in chosen or any([await self.leads_unasked(each, mode) for each in chosen])
        expect(holds, f"is in {mode} mode, which nobody has chosen")
        changes = len((await trial.values())["mode_changes"])
        if fresh and changes == self.changes:
            await named(f"{fresh[-1]} in {mode} mode", trial.check_facts())
        self.mode, self.changes = mode, changes
        self.targets.clear()
        await trial.check_tools()

    async def leads_unasked(self, source: str, target: str) -> bool:
        """Whether the model may go there from ``source`` without a question, over others too."""
        reached, open_modes = {source}, [source]
        while open_modes:
            mode = open_modes.pop()
            for slug in {*self.modes} - reached:
                args = {"mode_slug": slug, "reason": "a walk"}
                calls = [
                    await judge_call(self.trial.agent, mode, name, args)
                    for name in self.trial.switches
                ]
                if any(verdict.is_by_edge for verdict in calls):
                    reached.add(slug)
                    open_modes.append(slug)
        return target in reached

    async def is_allowed(self, probe: str, tools: frozenset[str]) -> bool:
        """Whether a mode with these tools runs it unasked."""
        deps, agent = self.trial.deps, self.trial.agent
        modes = [mode for mode in self.modes if {*deps.seat(mode).model.names} == tools]
        verdicts = [await judge_call(agent, mode, probe, {"path": "a.md"}) for mode in modes]
        return any(verdict.kind == "allow" for verdict in verdicts)


async def walk(trial: Trial, seed: int) -> None:
    """Make some moves, each of which must keep the promises; ``seed`` chooses them."""
    steps = _Walk(trial, Random(seed))
    await steps.say()
    await steps.check()
    for _ in range(MOVES):
        await steps.move()
        await steps.check()


def check_agent(build: Build) -> None:
    """Try the graph that ``build`` makes, in each of the clone's modes, with a scripted model.

    Then say, decide, set modes and start again at random, the same in each run. Raises
    ``AssertionError`` that names what is open: a call that runs though the mode denies it, nobody
    has approved it or a person has rejected it, or once more after a cancel, or of which no fact
    says that it has run; a switch that nobody has said yes to; a model that is offered the tools of
    another mode.
    """
    with TemporaryDirectory() as folder:
        asyncio.run(_check(partial(Trial, build, Path(folder))))


async def _check(make: Callable[..., Trial]) -> None:
    first = make()
    modes = [*first.deps.catalog]
    for mode in modes:
        for probe in first.probes:
            await named(f"in {mode} mode, {probe}", _try_call(make, mode, probe))
        for switch in first.switches:
            for target in modes:
                if target != mode:
                    where = f"in {mode} mode, {switch} to {target}"
                    await named(where, _try_switch(make, switch, mode, target))
    for seed in range(WALKS):
        await named(f"in random walk {seed}", walk(make(), seed))


async def named(where: str, trial: Awaitable[object]) -> None:
    """Await the trial; what it raises says where."""
    try:
        await trial
    except NodeError as error:
        raise AssertionError(f"{where}: {error}") from error
    except AssertionError as error:
        raise AssertionError(f"{where} {error}") from None


async def _try_call(make: Callable[..., Trial], mode: str, probe: str) -> None:
    call = probe, {"path": "probe.md"}
    talk = make(call)
    verdict = (await judge_call(talk.agent, mode, *call)).kind
    await talk.say("go", mode=mode)
    if verdict != "allow":
        expect(not talk.ran, f"runs although {_WHY[verdict]}")
    await talk.answer("reject")
    if verdict != "allow":
        expect(not talk.ran, "runs although it is rejected, or denied")
    if verdict != "deny":
        talk = make(call)
        await talk.say("go", mode=mode)
        was_asked = await talk.answer("approve")
        expect(was_asked == (verdict == "ask"), f"is {'' if was_asked else 'not '}asked about")
        expect(len(talk.ran) == 1, f"runs {len(talk.ran)} times once it is approved")
        await talk.check_facts()
        await _try_cut_off(make(call), mode)


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
    await talk.check_facts()


async def _try_switch(make: Callable[..., Trial], name: str, mode: str, target: str) -> None:
    call = name, {"mode_slug": target, "reason": "a check"}
    verdict = await judge_call(make().agent, mode, *call)
    before, most = mode, mode if verdict.kind == "deny" else target
    if verdict.is_by_edge:
        before = target
    for decision, after in (("reject", before), ("approve", most)):
        talk = make(call)
        await talk.say("go", mode=mode)
        while await talk.asks_its_own():
            await talk.decide(APPROVE)
        holds = await talk.mode() == before
        why = "nobody need be asked" if verdict.is_by_edge else _SAYS[verdict.kind]
        expect(holds, f"takes {'no ' * verdict.is_by_edge}effect although {why}")
        await talk.check_tools()
        await talk.answer(decision)
        mode_now = await talk.mode()
        expect(mode_now == after, f"leads to {mode_now} mode after {decision!r}")
        await named(f"after {decision!r}", talk.check_tools())
