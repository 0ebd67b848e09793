"""``Judged``: a tool call with the verdict on it, and what follows from the two."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from langchain_core.messages import ToolCall

from modeshift.graph.messages.normal_form import get_call_id
from modeshift.graph.records.approvals import Approved, Planned
from modeshift.modes.effects import NO_EFFECT, Effect
from modeshift.modes.policy import Verdict
from modeshift.modes.rules.matching import Subject
from modeshift.tools.tool import Tool


@dataclass(frozen=True)
class Judged:
    """A call, and the verdict on it."""

    call: ToolCall
    verdict: Verdict
    tool: Tool | None = None
    args: dict[str, Any] | None = None
    """The arguments as the tool gets them. Both are None for a call that is invalid."""
    environment: str = ""
    """Digests of the mode, the limit and the workspace; of the mode it switches to, or of the tool
    as its MCP server describes it."""

    def digest(self, *scope: str) -> str:
        """Identifies the call: changes with everything that a person's decision depends on.

        That is the tool, the arguments, the paths they resolve to, the mode and the workspace.
        ``scope`` is the thread and the message, where the digest must differ between threads:
        a copy of a thread has the same calls.
        """
        call = self.call
        parts = [*scope, self.environment, get_call_id(call), call["name"], call["args"], self.args]
        return sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()

    @property
    def effect(self) -> Effect:
        """What the call does to the world; ``NO_EFFECT`` for one that is invalid."""
        return self.tool.spec.effect if self.tool is not None else NO_EFFECT

    @property
    def resolved(self) -> dict[str, str | None]:
        """The arguments that are paths or a URL, as resolved, which is what was judged."""
        if self.tool is None or self.args is None:
            return {}
        return {name: self.args[name] for name in self.tool.spec.resolved}

    @property
    def edited_paths(self) -> list[str]:
        """The files that it would change, as resolved paths."""
        if self.tool is None or self.args is None or not self.effect.changes_files:
            return []
        return [path for name in self.tool.spec.paths if (path := self.args[name]) is not None]

    @property
    def allowed_decisions(self) -> tuple[str, ...]:
        """The types of decision that a person may give on it."""
        if self.effect.takes_answer:
            return ("respond", "reject")
        return ("approve", "edit", "reject")

    @property
    def can_be_remembered(self) -> bool:
        """Whether "always allow" may be offered: never where a person must be asked every time."""
        return self.effect.can_be_remembered and not self.verdict.always_asks

    @property
    def subject(self) -> Subject:
        """What a remembered approval is compared with."""
        assert self.tool is not None
        assert self.args is not None
        return Subject(self.tool.spec, self.args)

    @property
    def runs_beside_others(self) -> bool:
        """Whether it may run in parallel with its neighbours: it changes nothing, or is denied."""
        return self.verdict.kind == "deny" or self.effect.runs_beside_others


def plan_batches(
    process_id: str, message: str, judged: Sequence[Judged], approved: Mapping[str, Approved]
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
            process_id=process_id,
        )
        if beside and one.runs_beside_others:
            plan[-1].append(planned)
        else:
            plan.append([planned])
        beside = one.runs_beside_others
    return plan
