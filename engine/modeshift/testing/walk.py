"""A random walk through a thread: whatever is said, decided and set, the gates hold."""

from random import Random
from typing import Any

from langchain_core.messages import AIMessage

from modeshift.testing.agent import judge_call
from modeshift.testing.conversation import APPROVE, REJECT, edit
from modeshift.testing.scripted import Call, calling
from modeshift.testing.trial import Trial, expect

WALKS = 8
MOVES = 8


class _Walk:
    """Does what a model, a person and a host could do, and notes what may come of it."""

    def __init__(self, trial: Trial, random: Random) -> None:
        self.trial = trial
        self.random = random
        self.modes = [*trial.deps.catalog]
        self.mode = trial.deps.catalog.default
        self.targets: set[str] = set()
        """The modes that a person or the host has chosen in this move."""
        self.written: dict[str, tuple[str, int]] = {}
        """By the path that a probe would change: the probe, and which answer called it."""
        self.approved: set[str] = set()
        self.seen = 0

    def choose_calls(self, number: int) -> list[Call]:
        calls: list[Call] = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            names = [*self.trial.probes, *self.trial.switches, "no_such_tool"]
            name = self.random.choice(names)
            path = f"{len(self.written)}.md"
            if name in self.trial.probes:
                self.written[path] = name, number
                calls.append((name, {"path": path}))
            elif name in self.trial.switches:
                target = self.random.choice([*self.modes, "no-such-mode"])
                calls.append((name, {"mode_slug": target, "reason": "a walk"}))
            else:
                calls.append((name, {"path": path}))
        return calls

    async def say(self) -> None:
        model, host = self.trial.model, dict[str, Any]()
        first = len(model.asked)
        numbers = range(first, first + self.random.choice([1, 2, 3]))
        said = [AIMessage("done")] * first  # the answers that were given, or left out
        model.answers[:] = said + [
            calling(*self.choose_calls(number), prefix=f"walk{number}") for number in numbers
        ]
        if self.random.random() < 0.3:
            host["mode"] = self.random.choice(self.modes)
            self.targets.add(host["mode"])
        await self.trial.say("go", **host)

    def decide(self, request: dict[str, Any]) -> dict[str, Any]:
        name, args = request["name"], request["args"]
        decision = self.random.choice(["approve", "approve", "reject", "edit"])
        if name not in (*self.trial.probes, *self.trial.switches):
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
        self.mode = mode
        self.targets.clear()
        await trial.check_tools()

    async def leads_unasked(self, source: str, target: str) -> bool:
        """Whether the model may go there from ``source`` without a question, over others too."""
        reached, open_modes = {source}, [source]
        while open_modes:
            here = open_modes.pop()
            for slug in {*self.modes} - reached:
                args = {"mode_slug": slug, "reason": "a walk"}
                calls = [
                    await judge_call(self.trial.agent, here, name, args)
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
    """Make some moves, each of which must keep what is promised; ``seed`` chooses them."""
    steps = _Walk(trial, Random(seed))
    await steps.say()
    await steps.check()
    for _ in range(MOVES):
        await steps.move()
        await steps.check()
