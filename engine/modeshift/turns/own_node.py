"""``run_own_command``: a command of a node of the clone's own; and its notes and questions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from modeshift.calls.decisions import Answer, ask_yes_or_no
from modeshift.calls.plans import PlanLimit
from modeshift.calls.running import is_test_run
from modeshift.messages.instructions import Instruction
from modeshift.messages.repair import mark_as_data
from modeshift.modes.errors import ModelError, ToolFailedError
from modeshift.modes.facts import Done, end_unseen
from modeshift.threads.facts import follow
from modeshift.threads.state import Update
from modeshift.tools.processes.background import Calling, Ran, shorten
from modeshift.tools.processes.process import MAX_SECONDS, Ended
from modeshift.tools.processes.sandboxes import Command
from modeshift.turns.start import Start


def write_notes(start: Start, notes: Sequence[Instruction], update: Update) -> None:
    """Add what the node tells the model to its update."""
    if isinstance(start.state["messages"][-1], AIMessage):  # behind which no provider takes one
        update["messages"] = [HumanMessage(note["text"]) for note in notes]
    else:
        update["instructions"] = [*notes]


async def run_own_command(start: Start, line: str, seconds: int, update: Update) -> Ended:
    """Run a command with the rights of the mode's commands; adds the facts after it to the update.

    Its text is marked as data: what it prints may be anybody's.
    """
    deps, slug = start.deps, start.now.mode
    seat, toolbox = deps.seat(slug, start.state.get("limit")), deps.toolbox
    facts = update.get("facts", start.state.get("facts", {}))
    # Unless it comes to its end, in a time limit of the node's, say.
    update["facts"] = follow(deps, facts, end_unseen(slug))
    limit = PlanLimit.of(start.state.get("approved_plan"))
    writable = None if limit is None else (await limit.look(deps)).writable
    commands = deps.started_calls.background.of(start.thread, seat.environment)
    running = commands.name_running() if commands else ""
    command = Command(line, ".", min(max(seconds, 1), MAX_SECONDS))
    edits_freely = seat.edit_restriction is None and writable != ()
    calling = Calling(edits_freely=edits_freely, writable=writable)
    try:
        if running and toolbox.sandbox:
            raise ToolFailedError(f"one runs at a time in the sandbox, and {running} still does")
        ended = await toolbox.commands.run(toolbox.workspace, command, calling)
    except ModelError as error:
        ended = Ended(None, f"[not run: {error}]")
    done = Done(
        tool="",
        mode=slug,
        is_success=True,
        may_have_written=calling.edits_freely or toolbox.sandbox is None,
        line=line,
        exit_code=ended.exit_code,
        was_alone=not running,
        runs_tests=is_test_run(deps, Ran(line, ".", ended.exit_code)),
    )
    update["facts"] = follow(deps, facts, done)
    return replace(ended, text=mark_as_data(shorten(ended.text), line, ""))


def ask_own_question(
    start: Start,
    config: RunnableConfig,
    name: str,
    text: str,
    args: Mapping[str, object],
    number: int,
) -> Answer:
    """A person's yes or no; a question with another ``number`` is another one."""
    messages, step = start.state.get("messages"), config.get("metadata", {}).get("langgraph_step")
    last = messages[-1].id if messages else ""
    unique = (last, step, number, start.node, name, text)
    return ask_yes_or_no(start.deps, name, text, args, *unique)
