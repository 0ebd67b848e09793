"""``GraphRun``: the graph's run on one message, with the questions to a person in between."""

import asyncio
from contextlib import aclosing
from typing import Any

from acp import RequestError
from acp.interfaces import Client
from acp.schema import StopReason
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command, Durability, Interrupt, StreamMode
from pydantic import ValidationError

from doors.editor.agent_cache import config_of
from doors.editor.permission_requests import Question, plans_of
from doors.editor.session_config import SessionConfig
from doors.editor.updates import SessionUpdates
from graph.approvals.requests import Request
from graph.messages.repair import VOID
from graph.state import Input

STREAMS: list[StreamMode] = ["messages", "updates", "tasks", "custom"]
DURABILITY: Durability = "sync"
"""An approval is stored before the call begins."""
CALLS_AT_ONCE = 8
"""Of one message: each that waits for the editor holds one of the process's threads."""
Given = Input | Command[Any] | None
"""What the graph is run with; None to go on."""


class Stopped(Exception):  # noqa: N818  # no error
    """The person has dismissed a question, and with it the turn."""


class Gone(Exception):  # noqa: N818  # no error
    """There is no editor any more: what waits for a person still waits."""


class GraphRun:
    """One to a message, or to a question that is asked again."""

    def __init__(
        self, client: Client, session_config: SessionConfig, updates: SessionUpdates
    ) -> None:
        self.is_running = False
        """Whether the graph runs: it has not begun, has ended or waits for a person otherwise."""
        self._client = client
        self._session_config = session_config
        self._updates = updates
        self._id = session_config.record.id

    async def run(self, given: Given = None, interrupt: Interrupt | None = None) -> StopReason:
        """To its end, from an input or from a question that is open.

        Raises ``Stopped``, ``Gone``, ``RequestError`` where the editor cannot ask, and what
        a run raises.
        """
        while True:
            if interrupt is None:
                try:
                    interrupt = await self._stream(given)
                except GraphDrained:
                    await self._session_config.apply()
                    given = None
                    continue
            if interrupt is None:
                return "max_tokens" if self._updates.was_cut_off else "end_turn"
            self._session_config.is_asking = not self._is_about_the_mode(interrupt)
            given, interrupt = await self._ask(interrupt), None
            self._session_config.is_asking = False
            if given is None and not self._session_config.mode_is_set.is_set():
                return "end_turn"
            if given is None:
                await self._session_config.apply()

    def _is_about_the_mode(self, interrupt: Interrupt) -> bool:
        """Whether an answer may change the mode, or the approvals."""
        asked = {one["name"] for one in interrupt.value["action_requests"]}
        specs = self._session_config.loaded.deps.toolbox.specs
        return any(
            (spec.effect.switches_mode or spec.effect.takes_answer) and spec.name in asked
            for spec in specs
        )

    async def _stream(self, given: Given) -> Interrupt | None:
        """Run until it ends or waits for a person.

        Raises ``GraphDrained`` between two steps where the user has chosen something: what
        the model wrote before is judged under that.
        """
        self.is_running = True
        session_config, control, interrupt = self._session_config, RunControl(), None
        # Not before the first node has taken in what the run is given.
        session_config.control = control if given is None else None
        config = RunnableConfig(**config_of(self._id), max_concurrency=CALLS_AT_ONCE)
        stream = session_config.loaded.agent.astream(
            given, config, stream_mode=STREAMS, durability=DURABILITY, control=control
        )
        part: Any
        try:
            async with aclosing(stream) as parts:  # type: ignore[type-var]  # a generator it is
                async for kind, part in parts:
                    if kind == "updates" and "__interrupt__" in part:
                        (interrupt,) = part["__interrupt__"]
                    else:
                        await self._heard(kind, part)
                    if kind == "updates":
                        session_config.control = control
                    if session_config.control is not None and session_config.are_due():
                        control.request_drain()
                        if kind == "tasks" and "input" in part:
                            raise GraphDrained  # its tasks have not begun, and need not
        finally:
            session_config.run_has_ended()
            self.is_running = False
        return interrupt

    async def _heard(self, stream: str, part: Any) -> None:
        deps, updates = self._session_config.loaded.deps, self._updates
        match stream, part:
            case "messages", (message, _):
                await updates.piece(deps, message)
            case "custom", {"type": "tool_output", "tool_call_id": str(id), "text": str(text)}:
                await updates.output(id, text)
            case "tasks", {"name": "act", "input": {"planned": planned}}:
                if planned["denied"] is None:
                    await updates.begins(deps, planned)
            case "updates", dict():
                for node, update in part.items():
                    await updates.update(deps, node, update or {})
                    for notice in (update or {}).get("notices", ()):
                        if notice != VOID:  # the cards say that
                            await updates.notice(notice)
                    await self._session_config.heard(update or {})

    async def _ask(self, interrupt: Interrupt) -> Command[Any] | None:
        """Ask for each call; None where the answer is to come in the chat, or the mode was set."""
        request: Request = interrupt.value
        loaded = self._session_config.loaded
        values = (await loaded.state(self._id)).values
        plans = await asyncio.to_thread(plans_of, loaded.deps, values.get("written", []))
        decisions = list[dict[str, Any]]()
        for asked in request["action_requests"]:
            question = await asyncio.to_thread(
                Question.of, loaded.deps, self._updates.folder, asked, values["mode"], plans
            )
            if question.is_open:
                await self._updates.say(asked["description"])
                return None
            self._updates.waits(question.view)
            decision = await self._decision(question)
            if decision is None:
                return None
            if decision.get("approvals") == "manual":
                await self._session_config.forget("approvals", "auto")
            decisions.append(decision)
        return resumed(interrupt, decisions)

    async def _decision(self, question: Question) -> dict[str, Any] | None:
        """The decision on one call; None as in ``_ask``."""
        asking = asyncio.ensure_future(
            self._client.request_permission(
                session_id=self._id,
                tool_call=question.tool_call(),
                options=question.choices(),
            )
        )
        mode_set = asyncio.ensure_future(self._session_config.mode_is_set.wait())
        try:
            await asyncio.wait({asking, mode_set}, return_when=asyncio.FIRST_COMPLETED)
            if mode_set.done():
                return None
            chosen = question.decision(await asking)
        except ConnectionError:
            raise Gone from None
        except (RequestError, ValidationError) as error:
            problem = f"the editor did not ask about {question.view.title!r}: {error}"
            raise RequestError(-32603, problem) from error
        finally:
            asking.cancel()
            mode_set.cancel()
        if chosen is None:
            raise Stopped
        return chosen.decision


def resumed(interrupt: Interrupt, decisions: list[dict[str, Any]]) -> Command[Any]:
    """The decisions as the answer to this question, and to no other."""
    answer = {"decisions": decisions, "question": interrupt.value["question"]}
    return Command(resume={interrupt.id: answer})
