"""``look_ahead``: sub-tasks of one message that can only look do so side by side."""

import asyncio
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from graph.act import act_node
from graph.deps import AgentDeps
from graph.models.usage import Usage, add_usage
from graph.records.approvals import Planned
from graph.records.subtasks import Ahead
from graph.records.switches import list_switches
from graph.routing import Node, reconcile_mode
from graph.state import ActTask, State
from graph.subtasks.begin import is_as_approved, read_conversation
from graph.think import ask_model, judge_answer
from modes.chart import Event, Phase


def look_ahead_node(deps: AgentDeps) -> Node:
    """A step of each: the model's answer, and what of its calls only reads.

    One that is done, or needs a person or anything else, waits for its turn; then it goes on as
    the thread's conversation from where it is.
    """
    act = act_node(deps)

    async def look_ahead(
        state: State, config: RunnableConfig, runtime: Runtime[None]
    ) -> dict[str, Any]:
        now, changed = reconcile_mode(deps, state)
        ready = {"phase": deps.machine.send(now, Event.SWITCH).phase.value}
        tasks = list_switches(state.get("switch"))
        if changed or not all(is_as_approved(deps, state, one) for one in tasks):
            return ready  # where it is found out again, and said
        views = [view for view in _list_views(state) if view["phase"] == Phase.THINKING]
        # The answers of several would come in as one.
        quiet = merge_configs(config, {"tags": [TAG_NOSTREAM]})
        answers = await asyncio.gather(
            *(ask_model(deps, view["mode"], view, quiet) for view in views)
        )
        steps, usage = list[Ahead](), Usage()
        for view, (given, answer) in zip(views, answers, strict=True):
            # One after the other: each has to know the ids of the others' calls.
            others = cast("State", {**view, "ahead": [*state.get("ahead", []), *steps]})
            update = given
            if answer is not None:
                update = await judge_answer(deps, others, given, answer)
            taken = update.get("usage", Usage())
            usage = add_usage(usage, taken)
            update["usage"] = Usage(last=taken.get("last"))
            steps.append(Ahead(id=_get_id(view), update=update))

        async def run_reads(view: State, update: dict[str, Any]) -> None:
            while update["phase"] == Phase.ACTING and update["plan"]:
                batch, *rest = update["plan"]
                if not all(_only_reads(deps, one) for one in batch):
                    return
                task = {**view, **update, "plan": rest}
                sent = [{**task, "planned": one, "is_last": one is batch[-1]} for one in batch]
                for done in await asyncio.gather(
                    *(act(cast("ActTask", one), config, runtime) for one in sent)
                ):
                    new = cast("dict[str, Any]", done.update)
                    update |= {**new, "messages": [*update["messages"], *new["messages"]]}

        await asyncio.gather(
            *(run_reads(view, one["update"]) for view, one in zip(views, steps, strict=True))
        )
        is_done = all(one["update"]["phase"] != Phase.THINKING for one in steps)
        usage.pop("last", None)
        return {"ahead": steps, "usage": usage, **(ready if is_done else {})}

    return look_ahead


def _list_views(state: State) -> list[State]:
    """The state as each sub-task's conversation has it."""
    parent = {"messages": state["messages"]}
    return [
        cast(
            "State",
            {
                **state,
                **read_conversation(state, one, task),
                "mode": one["mode_slug"],
                "first_mode": one["mode_slug"],
                "mode_changes": [],
                "written": [],
                "refused": [],
                "switch": None,
                "parents": [*state.get("parents", []), parent],
            },
        )
        for one in list_switches(state.get("switch"))
        if (task := one.get("task")) is not None
    ]


def _get_id(view: State) -> str:
    subtask = view.get("subtask")
    assert subtask is not None
    return subtask["id"]


def _only_reads(deps: AgentDeps, planned: Planned) -> bool:
    """Whether the call may run beside other conversations; one that is refused may."""
    name = planned["call"]["name"]
    return planned["denied"] is not None or not deps.toolbox[name].spec.effect.changes_the_world
