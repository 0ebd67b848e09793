"""``ask_in_editor``: has the editor ask about the calls that wait, one after another."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

from acp import RequestError, schema, tool_diff_content
from langchain_core.messages import ToolCall
from langgraph.types import Interrupt
from pydantic import ValidationError

from modeshift.calls.previews import Preview, preview_call
from modeshift.calls.requests import ActionRequest, Request
from modeshift.calls.ways import list_suggestions
from modeshift.editor.display.tool_calls import ShownContent, ToolCallView, as_output, as_prose
from modeshift.editor.display.updates import SessionUpdates
from modeshift.editor.files import Folder, describe_refusal
from modeshift.editor.session_config import SessionConfig
from modeshift.modes.effects import Effect
from modeshift.modes.phases import Phase
from modeshift.modes.plain_text import make_readable, to_one_line
from modeshift.modes.rules.matching import get_server_part
from modeshift.thread import GivenDecision, Run
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues

INTERNAL_ERROR = -32603
MAX_ASKED = 1_000_000
"""How many characters of a call a person is shown at most."""
MAX_TARGETS = 4
MAX_ANSWERS = 4
MAX_LABEL = 80
MAX_SITE = 2000


@dataclass(frozen=True)
class Option:
    """One way to answer; ``decision`` is None for an answer in the chat."""

    id: str
    name: str
    kind: schema.PermissionOptionKind
    decision: GivenDecision | None


@dataclass(frozen=True)
class CallQuestion:
    """A question about one call; the option that allows most is never the first."""

    view: ToolCallView
    content: list[ShownContent]
    options: list[Option]
    text: str = ""
    """The text of a question that is answered in words."""

    @classmethod
    def of(
        cls,
        deps: AgentDeps,
        folder: Folder,
        action: ActionRequest,
        state: StateValues,
        approvals: str,
    ) -> "CallQuestion":
        """Make the question for a thread with this ``state``. Blocks: it reads files."""
        call = ToolCall(name=action["name"], args=action["args"], id=action["id"])
        view = ToolCallView.of(deps, folder, call)
        preview = preview_call(deps, action, state["mode"], state.get("written", ()))
        policy = deps.approval_words[approvals].name
        description = as_prose(f"{action['description']}\nApprovals: {policy}.")
        if view.effect.switches_mode:
            offered = _offer_modes(deps, action, state["mode"], approvals, view.effect)
            plans = preview["switch"]["plans"] if preview and "switch" in preview else []
            # What the mode has written is shown to whoever decides on leaving it.
            texts = [f"{plan['path']}:\n\n{plan.get('problem') or plan['after']}" for plan in plans]
            return cls(view, [description, *map(as_output, texts)], [*offered])
        if view.effect.takes_answer:
            text = make_readable(str(action["args"].get("question", "")))
            return cls(view, [description], [*_offer_answers(action)], text)
        content = [*_show_call(action, view, preview), description]
        return cls(view, content, [*_offer_approval(action, view)])

    def get(self, id: object) -> Option | None:
        """Find the option with this id; None if it was not offered."""
        return next((option for option in self.options if option.id == id), None)


def _show_call(
    action: ActionRequest, view: ToolCallView, preview: Preview | None
) -> Iterator[ShownContent]:
    """Show the whole call: the title has only its beginning."""
    shown: list[str] = []
    if preview is not None:
        shown = preview["shows"]
        if "command" in preview:
            yield as_output(preview["command"], MAX_ASKED)
        if (change := preview.get("change")) is not None:
            if "problem" in change:
                yield as_prose(f"The change cannot be shown: {change['problem']}")
            else:
                yield tool_diff_content(str(view.files[0]), change["after"], change["before"])
    rest = [f"{name}: {value}" for name, value in action["args"].items() if name not in shown]
    if rest:
        yield as_output("\n".join(rest), MAX_ASKED)


def _offer_modes(
    deps: AgentDeps, action: ActionRequest, mode: str, approvals: str, effect: Effect
) -> Iterator[Option]:
    no, to = ("No", "in") if effect.starts_subtask else ("No, stay", "to")
    yield Option(approvals, "Yes", "allow_once", {"type": "approve", "approvals": approvals})
    yield Option("reject", no, "reject_once", {"type": "reject"})
    others = [slug for slug in deps.catalog if slug not in (mode, action["args"].get("mode_slug"))]
    for slug in others[:MAX_TARGETS]:
        target = deps.catalog[slug]
        if deps.models.problem(target) is None:
            args = {**action["args"], "mode_slug": slug}
            edited = {"type": "edit", "edited_action": {"name": action["name"], "args": args}}
            yield Option(f"to-{slug}", f"Yes, but {to} {target.name} mode", "allow_once", edited)
    (other,) = (words for value, words in deps.approval_words.items() if value != approvals)
    name = f"Yes, and {other.name.lower()}. {other.sentence}"
    decision = {"type": "approve", "approvals": other.value}
    yield Option(other.value, name, "allow_always", decision)


def _offer_answers(action: ActionRequest) -> Iterator[Option]:
    """Offer the suggested answers; the model wrote them, so each begins with words of ours."""
    answers = list(list_suggestions(action["args"]).items())[:MAX_ANSWERS]
    for number, (label, slug) in enumerate(answers):
        does = f"Switch to {slug} mode, and answer" if slug else "Answer"
        name = f"{does}: {to_one_line(label.removesuffix(f' (switch to {slug})'), MAX_LABEL)}"
        decision = {"type": "respond", "message": label}
        yield Option(f"answer-{number}", name, "allow_once", decision)
    yield Option("chat", "Answer in the chat", "reject_once", None)


def _offer_approval(action: ActionRequest, view: ToolCallView) -> Iterator[Option]:
    yield Option("once", "Allow once", "allow_once", {"type": "approve"})
    if "remember" in action:
        # "Always" means the whole site of a fetch, while the title shows one page. A host's owner
        # is at the end of its name, so that is not cut off.
        shown, most = view.title, MAX_LABEL
        if view.effect.reaches_network:
            shown, most = action["remember"], MAX_SITE
        name = f"Always in this session: {to_one_line(shown, most)}"
        yield Option("always", name, "allow_always", {"type": "approve", "remember": True})
        if whose := get_server_part(action["name"]):
            name = f"Always in this session: all of {whose}"
            every = {"type": "approve", "remember": f"{whose}__*"}
            yield Option("always-server", name, "allow_always", every)
    yield Option("reject", "Reject", "reject_once", {"type": "reject"})


CHOICE, WORDS = "suggestion", "words"


def build_form(question: CallQuestion, session_id: str) -> schema.ElicitationFormSessionMode:
    """A form with the suggestions and a line for other words; nothing is chosen at first."""
    fields: dict[str, schema.ElicitationStringPropertySchema] = {}
    suggestions = [each for each in question.options if each.decision is not None]
    if suggestions:
        fields[CHOICE] = schema.ElicitationStringPropertySchema(
            type="string",
            title="A suggestion",
            one_of=[schema.EnumOption(const=each.id, title=each.name) for each in suggestions],
        )
    title = "Or other words" if suggestions else "Your answer"
    fields[WORDS] = schema.ElicitationStringPropertySchema(type="string", title=title)
    return schema.ElicitationFormSessionMode(
        session_id=session_id,
        tool_call_id=question.view.id,
        requested_schema=schema.ElicitationSchema(properties=dict(fields)),
    )


def read_form(question: CallQuestion, answer: schema.CreateElicitationResponse) -> Option | None:
    """The option that was chosen, words first; None for a closed form or an unknown choice.

    A form that is declined, or left empty, is an answer in the chat.
    """
    if isinstance(answer, schema.DeclineElicitationResponse):
        return question.options[-1]
    if not isinstance(answer, schema.AcceptElicitationResponse):
        return None
    values = answer.content or {}
    words, choice = values.get(WORDS), values.get(CHOICE)
    if isinstance(words, str) and words.strip():
        return Option(WORDS, words, "allow_once", {"type": "respond", "message": words.strip()})
    return question.options[-1] if choice in (None, "") else question.get(choice)


class TurnDismissed(Exception):  # noqa: N818  # not an error
    """The person has closed a question's dialog, and so ended the turn."""


class EditorGone(Exception):  # noqa: N818  # not an error
    """The connection is closed; a question stays open."""


async def ask_in_editor(config: SessionConfig, interrupt: Interrupt) -> Run | None:
    """The run with the answer; None to wait for one in the chat, or once another mode is chosen.

    Raises ``TurnDismissed``, ``EditorGone``, and ``RequestError`` if the editor cannot ask.
    """
    request: Request = interrupt.value
    updates = config.updates
    deps, approvals = config.loaded.deps, config.options.approvals
    values = (await config.thread.state()).values
    # A node's own question stays: the node takes in no mode, and would ask again at once.
    is_own = values.get("phase") != Phase.REVIEWING
    withdrawn = asyncio.Event() if is_own else config.mode_is_pending
    decisions = list[GivenDecision]()
    rejected = list[Effect]()
    for action in request["action_requests"]:
        question = await asyncio.to_thread(
            CallQuestion.of, deps, updates.folder, action, values, approvals
        )
        if len(question.options) == 1 and not updates.editor.has_forms:
            await updates.say(action["description"])
            return None
        question = replace(question, view=question.view.of_subtask(deps, updates.subtask))
        updates.track(question.view)
        if any(effect.voids(question.view.effect) for effect in rejected):
            decisions.append({"type": "reject"})
            continue
        decision = await _decide(withdrawn, updates, question)
        if decision is None:
            return None
        if decision["type"] == "reject":
            rejected.append(question.view.effect)
        decisions.append(decision)
        if is_own:
            is_yes = decision["type"] == "approve"
            await updates.end_own_question(question.view.id, is_yes=is_yes)
    return config.thread.answer(interrupt, decisions)


async def _decide(
    withdrawn: asyncio.Event, updates: SessionUpdates, question: CallQuestion
) -> GivenDecision | None:
    """The person's decision on one call; None once it is ``withdrawn``, or for the chat."""
    asking = asyncio.ensure_future(_ask(updates, question))
    mode_chosen = asyncio.ensure_future(withdrawn.wait())
    try:
        await asyncio.wait({asking, mode_chosen}, return_when=asyncio.FIRST_COMPLETED)
        if mode_chosen.done():
            return None
        chosen = await asking
    except ConnectionError:
        raise EditorGone from None
    except (RequestError, ValidationError) as error:
        problem = f"the editor did not ask about {question.view.title!r}: {describe_refusal(error)}"
        raise RequestError(INTERNAL_ERROR, problem) from error
    finally:
        asking.cancel()
        mode_chosen.cancel()
    if chosen is None:
        raise TurnDismissed
    return chosen.decision


async def _ask(updates: SessionUpdates, question: CallQuestion) -> Option | None:
    """Have the editor ask; None if its dialog was closed, or for an option that was not offered.

    If this is cancelled, the editor is told to close its dialog.
    """
    client, session = updates.editor.client, updates.id
    try:
        if question.view.effect.takes_answer and updates.editor.has_forms:
            form = build_form(question, session)
            form_answer = await client.create_elicitation(message=question.text, mode=form)
            return read_form(question, form_answer)
        answer = await client.request_permission(
            session_id=session,
            tool_call=question.view.question(question.content),
            options=[
                schema.PermissionOption(option_id=option.id, name=option.name, kind=option.kind)
                for option in question.options
            ],
        )
        outcome = answer.outcome
        return (
            question.get(outcome.option_id) if isinstance(outcome, schema.AllowedOutcome) else None
        )
    except asyncio.CancelledError:
        await updates.editor.withdraw(question.view.id)
        raise
