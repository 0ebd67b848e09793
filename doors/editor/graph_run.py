"""``GraphRun``: a run of the graph, with the questions to a person in between."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from acp import RequestError
from acp.interfaces import Client
from acp.schema import ClientCapabilities, StopReason
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Durability, Interrupt, StreamMode
from pydantic import ValidationError

from doors.editor.display.forms import build_form, read_form
from doors.editor.display.permission_requests import Option, Question, show_plans
from doors.editor.display.updates import SessionUpdates
from doors.editor.files import describe_error
from doors.editor.session_config import SessionConfig
from graph.approvals.outcome import voids
from graph.approvals.requests import Request
from graph.messages.repair import VOID
from graph.state import Input
from modes.effects import Effect

STREAMS: list[StreamMode] = ["messages", "updates", "tasks", "custom"]
DURABILITY: Durability = "sync"
"""An approval is stored before the call begins."""
MAX_CONCURRENCY = 8
"""Calls of one message that run at once: each that waits for the editor blocks a thread."""
INTERNAL_ERROR = -32603
Given = Input | Command[Any] | None
"""What the graph is run with; None to continue."""


class TurnDismissed(Exception):  # noqa: N818  # not an error
    """The person has closed a question's dialog, and so ended the turn."""


class EditorGone(Exception):  # noqa: N818  # not an error
    """The connection is closed; a question stays open."""


class _Paused(Exception):  # noqa: N818  # not an error
    """The run stands between two steps, because the user has chosen another model."""


class GraphRun:
    """A run for one message, or for a question that is asked again."""

    def __init__(
        self,
        client: Client,
        config: SessionConfig,
        updates: SessionUpdates,
        offered: ClientCapabilities,
    ) -> None:
        self.is_running = False
        """Whether the graph runs; false while a person is asked."""
        self._client = client
        self._config = config
        self._updates = updates
        self._has_forms = bool(offered.elicitation and offered.elicitation.form is not None)
        self._id = config.record.id

    async def run(self, given: Given = None, interrupt: Interrupt | None = None) -> StopReason:
        """Run to the end, from an input or from an open question.

        Raises ``TurnDismissed``, ``EditorGone``, ``RequestError`` if the editor cannot ask, and
        whatever the graph raises.
        """
        while True:
            try:
                interrupt = interrupt or await self._stream(given)
            except _Paused:
                given = None
                await self._config.load_model()
                continue
            if interrupt is None:
                return "max_tokens" if self._updates.was_cut_off else "end_turn"
            self._config.is_asking = True
            given, interrupt = await self._ask(interrupt), None
            self._config.is_asking = False
            if given is None and not self._config.mode_is_pending.is_set():
                return "end_turn"

    async def _stream(self, given: Given) -> Interrupt | None:
        """Run until the end, or until a person has to decide.

        Raises ``_Paused`` once the user has chosen another model. The first step is always done:
        it takes in what the run is given.
        """
        config, interrupt = self._config, None
        can_pause = given is None
        options = RunnableConfig(**config.run_config, max_concurrency=MAX_CONCURRENCY)
        stream = config.loaded.agent.astream(
            given, options, stream_mode=STREAMS, durability=DURABILITY
        )
        part: Any
        self.is_running = True
        try:
            async with aclosing(stream) as parts:  # type: ignore[type-var]  # it is a generator
                async for kind, part in parts:
                    if kind == "updates" and "__interrupt__" in part:
                        (interrupt,) = part["__interrupt__"]
                    else:
                        await self._show(kind, part)
                    can_pause = can_pause or kind == "updates"
                    is_announced = kind == "tasks" and "input" in part  # and has not begun
                    if is_announced and can_pause and config.model_is_pending:
                        raise _Paused
        finally:
            self.is_running = False
        return interrupt

    async def _show(self, stream: str, part: Any) -> None:
        deps, updates = self._config.loaded.deps, self._updates
        match stream, part:
            case "messages", (message, _):
                await updates.show_chunk(deps, message)
            case "custom", {"type": "tool_output", "tool_call_id": str(id), "text": str(text)}:
                await updates.show_output(id, text)
            case "tasks", {"name": "act", "input": {"planned": planned}}:
                if planned["denied"] is None:
                    await updates.begin_call(deps, planned)
            case "tasks", {"name": "compact_history", "input": _}:
                await updates.say("> The conversation is being summarized.\n\n")
            case "updates", dict():
                for node, update in part.items():
                    await updates.show_update(deps, node, update or {})
                    for notice in (update or {}).get("notices", ()):
                        if notice != VOID:  # the tool calls say so themselves
                            await updates.show_notice(notice)
                    await self._config.follow(update or {})

    async def _ask(self, interrupt: Interrupt) -> Command[Any] | None:
        """Ask for each call; None to wait for an answer in the chat, or if a mode is chosen."""
        request: Request = interrupt.value
        loaded = self._config.loaded
        values = (await self._config.read_state()).values
        plans = await asyncio.to_thread(show_plans, loaded.deps, values.get("written", []))
        decisions = list[dict[str, Any]]()
        rejected = list[Effect]()
        for action in request["action_requests"]:
            question = await asyncio.to_thread(
                Question.of,
                loaded.deps,
                self._updates.folder,
                action,
                values["mode"],
                plans,
                self._config.options.approvals,
            )
            if question.has_no_choices and not self._has_forms:
                await self._updates.say(action["description"])
                return None
            view = question.view.of_subtask(loaded.deps, self._updates.subtask)
            question = replace(question, view=view)
            self._updates.track(question.view)
            if any(voids(effect, view.effect) for effect in rejected):
                decisions.append({"type": "reject"})
                continue
            decision = await self._decide(question)
            if decision is None:
                return None
            if decision["type"] == "reject":
                rejected.append(view.effect)
            decisions.append(decision)
        return resume_with(interrupt, decisions)

    async def _decide(self, question: Question) -> dict[str, Any] | None:
        """The person's decision on one call; None as in ``_ask``."""
        asking = asyncio.ensure_future(self._request(question))
        mode_chosen = asyncio.ensure_future(self._config.mode_is_pending.wait())
        try:
            await asyncio.wait({asking, mode_chosen}, return_when=asyncio.FIRST_COMPLETED)
            if mode_chosen.done():
                return None
            chosen = await asking
        except ConnectionError:
            raise EditorGone from None
        except (RequestError, ValidationError) as error:
            why = describe_error(error)
            problem = f"the editor did not ask about {question.view.title!r}: {why}"
            raise RequestError(INTERNAL_ERROR, problem) from error
        finally:
            asking.cancel()
            mode_chosen.cancel()
        if chosen is None:
            raise TurnDismissed
        return chosen.decision

    async def _request(self, question: Question) -> Option | None:
        """Have the editor ask; None if its dialog was closed."""
        if question.view.effect.takes_answer and self._has_forms:
            given = await self._client.create_elicitation(
                message=question.text, mode=build_form(question, self._id)
            )
            return read_form(question, given)
        answer = await self._client.request_permission(
            session_id=self._id,
            tool_call=question.tool_call(),
            options=question.permission_options(),
        )
        return question.find_option(answer)


def resume_with(interrupt: Interrupt, decisions: list[dict[str, Any]]) -> Command[Any]:
    """The decisions as an answer to this question, and to no other."""
    answer = {"decisions": decisions, "question": interrupt.value["question"]}
    return Command(resume={interrupt.id: answer})
