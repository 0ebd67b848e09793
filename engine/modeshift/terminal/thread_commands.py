"""``take_back_allowed``, ``undo`` and other slash commands that ask about a thread or change it."""

import asyncio

from modeshift.agent import Agents
from modeshift.calls.previews import list_changes
from modeshift.calls.remembered import ALL, describe_remembered, find_new
from modeshift.modes.plain_text import to_one_line
from modeshift.terminal.choosing import Choice
from modeshift.terminal.panel import Panel
from modeshift.terminal.plain import PlainPanel
from modeshift.terminal.screen import BOLD, FAINT, Screen, count_lines
from modeshift.thread import Thread
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues
from modeshift.turns.undo import LAST, describe_undo

NOTHING = "nothing"


async def take_back_allowed(
    thread: Thread, deps: AgentDeps, screen: Screen, panel: Panel | PlainPanel
) -> None:
    """Show what the person always allows, and take back what they choose."""
    remembered = await thread.remembered()
    if not remembered:
        screen.words('No "always" of yours holds in this thread.')
        return
    choices = [Choice(NOTHING, "Nothing")]
    choices += [Choice(each["id"], describe_remembered(deps, each)) for each in remembered]
    choices.append(Choice(ALL, "All of these"))
    key = await panel.choose("Take back what runs unasked", choices, NOTHING)
    if key != NOTHING:
        await thread.set(forget=[key])
        screen.words("It asks again from the next step on.", FAINT)


def tell_allowed(before: StateValues, update: StateValues, deps: AgentDeps, screen: Screen) -> None:
    """Show what an update adds to what runs unasked."""
    for each in find_new(before, update):
        what = describe_remembered(deps, each)
        screen.words(f"Runs unasked from now on: {what}. /allowed takes it back.", FAINT)


async def choose_thread(agents: Agents, current: str, panel: Panel | PlainPanel) -> str | None:
    """The id of the other thread that the person chooses; None to stay in this one."""
    threads = await agents.list_threads()
    threads.pop(current, None)
    choices = [Choice(NOTHING, "Stay in this one")]
    choices += [Choice(id, to_one_line(told, 200)) for id, told in threads.items()]
    key = await panel.choose("Go on with which thread?", choices, NOTHING)
    return None if key == NOTHING else key


async def undo(thread: Thread, message: str, screen: Screen, panel: Panel | PlainPanel) -> bool:
    """Show what an undo does, and do it if the person says yes; whether it was done."""
    message = message or LAST
    deps, preview = await thread.deps(), await thread.undo(message)
    screen.block("\n".join(describe_undo(deps, preview)))
    choices = [Choice(NOTHING, "No"), Choice("undo", "Yes")]
    if await panel.choose("Undo this?", choices, NOTHING) == NOTHING:
        return False
    done = await thread.undo(message, preview["digest"])
    screen.block("\n".join(describe_undo(deps, done, "Done")))
    screen.words("/undo back goes back to before it.", FAINT)
    return True


async def show_changes(thread: Thread, deps: AgentDeps, screen: Screen) -> None:
    """Show the diff of each file that the thread has changed."""
    state = await thread.state()
    changes = await asyncio.to_thread(list_changes, deps, thread.id, state.values)
    for change in changes:
        screen.words(count_lines(change), BOLD)
        screen.diff(change)
    if not changes:
        screen.words("This thread has changed no file.")
