"""``plan_batches``: in which order the calls of a message run."""

from collections.abc import Mapping, Sequence

from graph.approvals.judged import Judged
from graph.deps import AgentDeps
from graph.messages.repair import get_call_id
from graph.records.approvals import Approved, Planned


def plan_batches(
    deps: AgentDeps, message: str, judged: Sequence[Judged], approved: Mapping[str, Approved]
) -> list[list[Planned]]:
    """The calls in the order they run: those that change something alone, others in parallel.

    ``message`` is the id of the message that made them; ``approved`` is by call id.
    """
    plan: list[list[Planned]] = []
    beside = False
    for one in judged:
        planned = Planned(
            call=one.call,
            message=message,
            approved=approved.get(get_call_id(one.call)),
            denied=one.verdict.refusal if one.verdict.kind == "deny" else None,
            process_id=deps.started_calls.process_id,
        )
        if beside and one.runs_beside_others:
            plan[-1].append(planned)
        else:
            plan.append([planned])
        beside = one.runs_beside_others
    return plan
