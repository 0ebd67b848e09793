"""``ask_person``: has the editor ask about the calls that wait, one after another."""

import asyncio
from dataclasses import replace
from typing import Any

from acp import RequestError
from langgraph.types import Command, Interrupt
from pydantic import ValidationError

from modeshift.editor.display.permission_requests import Option, Question, build_form, read_form
from modeshift.editor.display.updates import SessionUpdates
from modeshift.editor.files import describe_error
from modeshift.editor.session_config import SessionConfig
from modeshift.graph.approvals.outcome import voids
from modeshift.graph.approvals.requests import Request
from modeshift.modes.effects import Effect

INTERNAL_ERROR = -32603


class TurnDismissed(Exception):  # noqa: N818  # not an error
    """The person has closed a question's dialog, and so ended the turn."""


class EditorGone(Exception):  # noqa: N818  # not an error
    """The connection is closed; a question stays open."""


async def ask_person(
    config: SessionConfig, updates: SessionUpdates, interrupt: Interrupt
) -> Command[Any] | None:
    """The answer; None to wait for one in the chat, or if another mode is chosen meanwhile.

    Raises ``TurnDismissed``, ``EditorGone``, and ``RequestError`` if the editor cannot ask.
    """
    request: Request = interrupt.value
    deps, approvals = config.loaded.deps, config.options.approvals
    values = (await config.read_state()).values
    decisions = list[dict[str, Any]]()
    rejected = list[Effect]()
    for action in request["action_requests"]:
        question = await asyncio.to_thread(
            Question.of, deps, updates.folder, action, values, approvals
        )
        if question.has_no_choices and not updates.editor.has_forms:
            await updates.say(action["description"])
            return None
        question = replace(question, view=question.view.of_subtask(deps, updates.subtask))
        updates.track(question.view)
        if any(voids(effect, question.view.effect) for effect in rejected):
            decisions.append({"type": "reject"})
            continue
        decision = await _decide(config, updates, question)
        if decision is None:
            return None
        if decision["type"] == "reject":
            rejected.append(question.view.effect)
        decisions.append(decision)
    return resume_with(interrupt, decisions)


async def _decide(
    config: SessionConfig, updates: SessionUpdates, question: Question
) -> dict[str, Any] | None:
    """The person's decision on one call; None as in ``ask_person``."""
    asking = asyncio.ensure_future(_ask(updates, question))
    mode_chosen = asyncio.ensure_future(config.mode_is_pending.wait())
    try:
        await asyncio.wait({asking, mode_chosen}, return_when=asyncio.FIRST_COMPLETED)
        if mode_chosen.done():
            return None
        chosen = await asking
    except ConnectionError:
        raise EditorGone from None
    except (RequestError, ValidationError) as error:
        problem = f"the editor did not ask about {question.view.title!r}: {describe_error(error)}"
        raise RequestError(INTERNAL_ERROR, problem) from error
    finally:
        asking.cancel()
        mode_chosen.cancel()
    if chosen is None:
        raise TurnDismissed
    return chosen.decision


async def _ask(updates: SessionUpdates, question: Question) -> Option | None:
    """Have the editor ask; None if its dialog was closed. A cancel takes the question back."""
    client, session = updates.editor.client, updates.id
    try:
        if question.view.effect.takes_answer and updates.editor.has_forms:
            form = build_form(question, session)
            given = await client.create_elicitation(message=question.text, mode=form)
            return read_form(question, given)
        answer = await client.request_permission(
            session_id=session,
            tool_call=question.tool_call(),
            options=question.permission_options(),
        )
        return question.find_option(answer)
    except asyncio.CancelledError:
        await updates.editor.withdraw(question.view.id)
        raise


def resume_with(interrupt: Interrupt, decisions: list[dict[str, Any]]) -> Command[Any]:
    """The decisions as an answer to this question, and to no other."""
    answer = {"decisions": decisions, "question": interrupt.value["question"]}
    return Command(resume={interrupt.id: answer})
