"""What the graph does is what was proved: each step of a real thread is among the explored."""

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edges import SwitchEdge
from modeshift.modes.phases import Phase
from modeshift.proof.explore import Exploration
from modeshift.proof.moves import Moves
from modeshift.proof.nodes import Nodes
from modeshift.proof.places import Place, drop_parents, read_place
from modeshift.proof.prove import find_facts
from tests.harness.conversation import APPROVE, REJECT, Conversation, edit, make_agent, restart
from tests.harness.scripted import ScriptedModel, calling
from tests.proof.test_explore import Changes, make_deps

SLUGS = ("ask", "architect", "code")
CHANGES: Changes = {
    "architect": {
        "switches": (SwitchEdge(to="code", when="plan_written"), SwitchEdge(to="ask", ask="never"))
    },
    "ask": {"switches": (SwitchEdge(to="code", when="files_changed"), SwitchEdge(to="architect"))},
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What a person decides who wants it done."""
    is_question = request["name"] == "ask_followup_question"
    return {"type": "respond", "message": "yes"} if is_question else APPROVE


class Walk:
    """A thread of the real graph, and where it has been."""

    def __init__(self, folder: Path, answers: list[list[Any]], catalog: Catalog) -> None:
        steps = [
            calling(*calls, prefix=f"step{number}") if calls else AIMessage("done")
            for number, calls in enumerate(answers)
        ]
        self.catalog, self.folder = catalog, folder
        self.model = ScriptedModel(answers=steps)
        self.talk = Conversation(make_agent(folder, self.model, catalog=catalog))

    async def do(self, what: str, value: Any = None) -> None:
        waiting = await self.talk.waiting()
        if what == "decide" and waiting:
            await self.talk.decide(*map(answer, waiting))
        elif what == "host":
            await (
                self.talk.send(value) if await self.talk.values() else self.talk.say("go", **value)
            )
        elif what == "kill":  # between two steps, and another process goes on
            order: Command[Any] = Command(resume={"decisions": [answer(one) for one in waiting]})
            await self.talk.send_until("review", order if waiting else self._said())
            before = await self.talk.values()
            restart(self.talk, self.folder, model=self.model, catalog=self.catalog)
            assert await self.talk.values() == before
            if not await self.talk.waiting():
                await self.talk.send(None)
        else:
            await self.talk.send(self._said())

    @staticmethod
    def _said() -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": "go on"}]}

    async def places(self, facts: frozenset[str]) -> list[Place]:
        """Where each step of the graph has left the thread, the first one first.

        What ``intake`` is about to take in is no place: the facts of another mode may still be
        there.
        """
        states = [state async for state in self.talk.agent.aget_state_history(self.talk.config)]
        return [
            read_place(state.values, facts)
            for state in reversed(states)
            if (state.metadata or {}).get("source") == "loop" and state.next != ("intake",)
        ]


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Exploration:
    return explore(tmp_path_factory.mktemp("workspace"), CHANGES)


def explore(folder: Path, changes: Changes) -> Exploration:
    deps = make_deps(folder, *SLUGS, changes=changes)
    walk = Exploration(deps, find_facts(deps, ()))
    walk.run()
    return walk


async def check_places(walk: Walk, explored: Exploration) -> list[Place]:
    """That each was explored; where the thread has been."""
    places = await walk.places(explored.seats.facts)
    for place in places:
        bare = drop_parents(place)
        pending = bare.switch and bare.switch._replace(then=())
        assert bare._replace(switch=pending) in explored.places, f"not explored: {place}"
    return places


PLAN = ("write_file", {"path": "plan.md", "content": "x"})
TO_CODE = ("switch_mode", {"mode_slug": "code", "reason": "x"})


def task(slug: str) -> tuple[str, dict[str, Any]]:
    return "new_task", {"mode_slug": slug, "message": "go"}


@pytest.mark.parametrize("worker", ["architect", "code"])
@pytest.mark.parametrize(
    ("caller", "host", "is_plan"),
    [("architect", {}, True), ("code", {}, False), ("architect", {"mode": "ask"}, False)],
)
async def test_a_plan_that_a_sub_task_writes_is_one_where_it_comes_back_to(
    tmp_path: Path,
    explored: Exploration,
    worker: str,
    caller: str,
    host: dict[str, Any],
    is_plan: bool,
) -> None:
    answers = [[task(worker)], [PLAN], [task(worker)], [], [TO_CODE], [], []]
    if host:
        answers[2:4] = [[("ask_followup_question", {"question": "?"})], [], []]
    walk = Walk(tmp_path, answers, explored.deps.catalog)
    await walk.do("host", {"mode": caller})
    await walk.do("decide")
    await walk.do("decide")
    if host:
        await walk.do("host", host)
    for _ in range(3):
        await walk.do("decide")
    places = await check_places(walk, explored)
    back = [place for place in places if place.task is None and place.phase == Phase.THINKING][1:]
    assert any(place.task for place in places)
    assert back
    assert {"plan_written" in place.facts for place in back if place.mode == caller} <= {is_plan}
    assert places[-1].mode == ("ask" if host else "code")


async def stop_before_it_runs(folder: Path, explored: Exploration, slug: str) -> Walk:
    """The model has called in this mode, and the process is gone; another goes on."""
    walk = Walk(folder, [[PLAN], []], explored.deps.catalog)
    said = {**Walk._said(), "mode": slug, "approvals": "auto"}
    await walk.talk.send_until(slug, said)
    assert (await walk.talk.values())["phase"] == Phase.ACTING
    restart(walk.talk, folder, model=walk.model, catalog=walk.catalog)
    return walk


async def test_facts_end_with_a_mode_or_unseen_calls(tmp_path: Path, explored: Exploration) -> None:
    catalog = explored.deps.catalog
    walk = Walk(tmp_path, [[PLAN], [TO_CODE], []], catalog)
    await walk.talk.send_until("act", {**Walk._said(), "mode": "architect", "approvals": "auto"})
    assert (await walk.places(explored.seats.facts))[-1].facts >= {"plan_written"}
    await walk.talk.agent.aupdate_state(walk.talk.config, {"mode": "ask"}, as_node="intake")
    await walk.talk.send(None)
    assert not await walk.talk.waiting()
    assert "(files_changed: no)" in str((await walk.talk.values())["messages"])
    walk = await stop_before_it_runs(tmp_path, explored, "ask")
    await walk.talk.send(None)
    places = await check_places(walk, explored)
    assert places[-1].facts == {"files_changed"}
    walk = await stop_before_it_runs(tmp_path, explored, "architect")
    await walk.talk.send({"mode": "code"})
    places = await check_places(walk, explored)
    assert (places[-1].mode, places[-1].facts) == ("code", frozenset())


SETTINGS: list[tuple[str, str | None]] = [
    *(("mode", slug) for slug in SLUGS),
    *(("limit", slug) for slug in (*SLUGS, None, None)),
    *(("approvals", policy) for policy in ("manual", "auto")),
]
ANY_CALL = [
    *([("switch_mode", {"mode_slug": slug, "reason": "x"}) for slug in SLUGS] * 2),
    *(task(slug) for slug in SLUGS),
    PLAN,
    ("write_file", {"path": "a.txt", "content": "x"}),
    ("read_file", {"path": "a.txt"}),
    ("execute_command", {"command": "true"}),
    ("attempt_completion", {"result": "done"}),
    ("ask_followup_question", {"question": "?", "follow_up": [{"text": "y", "mode": "code"}]}),
]


def decide(random: Random, request: dict[str, Any]) -> dict[str, Any]:
    """Anything that a person may decide."""
    name, args = request["name"], request["args"]
    if random.random() < 0.1:
        return REJECT
    if name == "ask_followup_question":
        return {"type": "respond", "message": random.choice(["y", "y (switch to code)"])}
    if "mode_slug" not in args:
        return APPROVE
    words = "reason" if name == "switch_mode" else "message"
    policy = random.choice(["manual", "auto"])
    reworded = edit(name, **{**args, words: "other words"})
    another = edit(name, **{**args, "mode_slug": random.choice(SLUGS)})
    return random.choice([APPROVE, {**APPROVE, "approvals": policy}, reworded, another])


class RandomWalk(Walk):
    """One in which the model, a person and the host do anything at all."""

    def __init__(self, folder: Path, random: Random, catalog: Catalog) -> None:
        answers = [random.choices(ANY_CALL, k=random.choice([0, 1, 1, 2])) for _ in range(60)]
        super().__init__(folder, answers, catalog)
        self.random, self.talk.agent.store = random, InMemoryStore()

    async def take_a_step(self) -> None:
        waiting, kind = await self.talk.waiting(), self.random.random()
        name, value = self.random.choice(SETTINGS)
        if not await self.talk.values():
            mode, policy = self.random.choice(SLUGS), self.random.choice(["manual", "auto"])
            await self.talk.send({**self._said(), "mode": mode, "approvals": policy})
        elif waiting and kind < 0.7:
            order: Command[Any] = Command(
                resume={"decisions": [decide(self.random, request) for request in waiting]}
            )
            node = self.random.choice(["act", "review", "switch_mode", "end_subtask"])
            await self.talk.send_until(node, order)
        elif kind < 0.8:
            await self.talk.send({name: value} if value else {"approvals": "auto"})
        elif kind < 0.9:
            await self.talk.agent.aupdate_state(self.talk.config, {name: value})
            await self.talk.send(None)
        elif kind < 0.93:
            await self.talk.send({"end_subtask": True})
        elif kind < 0.96:
            await self.do("kill")
        else:
            await self.talk.send(self._said())
        if not await self.talk.waiting() and self.random.random() < 0.8:
            await self.talk.send(self._said() if await self._is_over() else None)

    async def _is_over(self) -> bool:
        return str((await self.talk.values())["phase"]) == Phase.IDLE


def forget_following(place: Place) -> Place:
    """The place without the sub-tasks that follow one: of these the machine tries fewer."""
    switch = place.switch and place.switch._replace(then=())
    parents = tuple(frame._replace(then=()) for frame in place.parents)
    return place._replace(switch=switch, parents=parents)


class Ways:
    """How many moves lead from one place to another."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._next: dict[Place, set[Place]] = {}

    def find(self, before: Place, after: Place) -> int | None:
        """None for more than two, which no step of the graph takes."""
        due = {before}
        for number in range(3):
            if forget_following(after) in map(forget_following, due):
                return number
            due = set().union(*map(self._list_next, due))
        return None

    def _list_next(self, place: Place) -> set[Place]:
        if place not in self._next:
            moves = self._moves.from_(place)
            self._next[place] = {move.to for move in moves if move.who != "illegal"}
        return self._next[place]


async def test_random_steps_are_moves_of_the_machine(tmp_path: Path, explored: Exploration) -> None:
    """What the host writes and the node that finds it are one step, as the graph keeps it."""
    deps, facts, random = explored.deps, explored.seats.facts, Random(41)
    ways = Ways(Moves(deps, explored.seats, Nodes(deps, facts), is_exact=True))
    steps = 0
    while steps < 300:
        walk = RandomWalk(tmp_path, random, deps.catalog)
        for _ in range(6):
            await walk.take_a_step()
        places = await check_places(walk, explored)
        steps += len(places)
        for before, after in pairwise(places):
            assert ways.find(before, after) is not None, f"no move from {before} to {after}"


async def test_where_a_turn_ends_is_a_move_of_the_models(tmp_path: Path) -> None:
    explored = explore(tmp_path, {"code": {"then": "ask"}})
    nodes = Nodes(explored.deps, explored.seats.facts)
    moves = Moves(explored.deps, explored.seats, nodes, is_exact=True)
    for end in ([], [("attempt_completion", {"result": "done"})]):
        walk = Walk(tmp_path, [end], explored.deps.catalog)
        await walk.do("host", {"mode": "code"})
        *_, before, after = await check_places(walk, explored)
        assert after in [move.to for move in moves.from_(before) if move.who == "model"]
        assert (before.mode, after.mode) == ("code", "ask")
