"""``Calls``: the calls of an answer, judged, and what may come of them."""

from collections.abc import Sequence
from typing import Any

from modeshift.graph.approvals.contents import digest_contents
from modeshift.graph.approvals.judged import Judged, plan_batches
from modeshift.graph.approvals.judging import digest_question
from modeshift.graph.deps import AgentDeps
from modeshift.graph.records.approvals import Asked, Planned
from modeshift.modes.errors import NodeError


class Calls:
    """All calls of one message of the model."""

    def __init__(
        self,
        deps: AgentDeps,
        message: str,
        judged: Sequence[Judged],
        made: dict[str, Any],
        approvals: str,
    ) -> None:
        """``message`` is the id of the message that made them; ``made`` is the step's.

        ``approvals`` is the policy under which they were judged.
        """
        self._deps = deps
        self._message = message
        self._judged = judged
        self._made = made
        self._approvals = approvals
        self._asking = [each for each in judged if each.verdict.kind == "ask"]

    @property
    def need_a_person(self) -> bool:
        """Whether a person has to decide on one of them at least."""
        return bool(self._asking)

    async def question(self) -> Asked:
        """What the person is to be asked, for ``go(Event.REVIEW, asked=...)``."""
        edited = [path for each in self._asking for path in each.edited_paths]
        contents = await digest_contents(self._deps, edited)
        asked = Asked(
            digest=digest_question(self._judged), contents=contents, approvals=self._approvals
        )
        self._made["asked"] = asked
        return asked

    def batches(self) -> list[list[Planned]]:
        """What is due, for ``go(Event.ACT, plan=...)``.

        Raises ``NodeError`` if a person must be asked.
        """
        if self._asking:
            name = self._asking[0].call["name"]
            raise NodeError(f"a person has to decide on {name} first: go(Event.REVIEW, asked=...)")
        process = self._deps.started_calls.process_id
        plan = plan_batches(process, self._message, self._judged, {})
        self._made["plan"] = plan
        return plan
