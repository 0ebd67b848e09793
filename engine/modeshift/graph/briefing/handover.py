"""``describe_handover``: what one mode leaves to the next."""

from collections.abc import Sequence

from modeshift.graph.records.switches import Todo
from modeshift.modes.plain_text import escape_invisible

MAX_NAMED = 30


def describe_handover(name: str, written: Sequence[str], todos: Sequence[Todo] = ()) -> str:
    """The files written in a mode (a plan, say), and the todo list, each line begun by a break."""
    lines = []
    if written:
        more = len(written) - MAX_NAMED
        rest = f" and {more} more" if more > 0 else ""
        names = ", ".join(map(escape_invisible, written[:MAX_NAMED]))
        lines.append(f"Files written in {name} mode: {names}{rest}.")
    if todos:
        lines.append("The todo list as it stands:")
        lines += [f"- {todo['content']} ({todo['status']})" for todo in todos[:MAX_NAMED]]
        if len(todos) > MAX_NAMED:
            lines.append(f"- and {len(todos) - MAX_NAMED} more")
    return "".join(f"\n{line}" for line in lines)
