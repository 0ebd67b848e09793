"""``python -m modeshift COMMAND``: what ``make`` runs."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from modeshift.commands.question import YesOrNo
from modeshift.modes.errors import UserError
from modeshift.modes.plain_text import make_readable
from modeshift.parts import COMMANDS as PARTS
from modeshift.parts import PROGRAMS, load
from modeshift.project import use_root
from modeshift.starting import collect_rarely, start_quickly
from modeshift.workarounds.pydantic import leaving_out_docstrings

COMMANDS: dict[str, tuple[str, dict[str, str]]] = {
    "acp": ("print the command line that makes it an agent in an editor (Zed, JetBrains, ...)", {}),
    "add": (
        "have another part of the engine: a provider, editor, mcp, ...",
        {"extra=NAME": "which; without it, print those that there are"},
    ),
    "audit": (
        "print who decided what and what has run, and check that none of it was changed",
        {
            "thread=ID": "which; entry by entry, checked against its conversation",
            "json": "an object on each line",
        },
    ),
    "chat": (
        "talk to the agent in this terminal",
        {"thread=ID": "go on with it; or last", "mode=SLUG": "the mode to go on in"},
    ),
    "clean-data": ("remove the threads of the dev server and the sessions of editors", {}),
    "dev": (
        "check the settings, start `langgraph dev`, and say where it is when it answers",
        {
            "port=N": "the port to listen on, 2024 unless given",
            "browser": "open the page in the browser",
            "verbose": "show everything that the server logs, not only its warnings",
        },
    ),
    "diagram": ("print the state machine of the modes as Mermaid", {}),
    "doctor": ("print what is enforced on this machine, what is not, and how to get the rest", {}),
    "modes": (
        "print what each mode may do with each tool; of one mode, also who says so",
        {
            "mode=SLUG": "this mode in full",
            "prompt": "all modes in full, with the system prompt and each mode's words",
            "start": "start the MCP servers that may be started, to list their tools",
        },
    ),
    "prove": (
        "explore all that the modes can do, and prove what must hold, or show how it breaks",
        {"json": "as JSON"},
    ),
    "remove": (
        "remove a mode and its files, and print what else speaks of it",
        {"mode=SLUG": "which"},
    ),
    "run": (
        "say one message without a terminal, and print what the agent does; nobody is asked",
        {
            "message=TEXT": "what to say; without it, standard input",
            "thread=ID": "go on with it; or last",
            "mode=SLUG": "the mode to say it in",
            "limit=SLUG": "the mode whose rights the thread never exceeds",
            "rules=FILE": "what to allow where a person would be asked; all else is denied",
            "max-cost=AMOUNT": "stop there: 2.50 (US dollars), or '500000 tokens'",
            "json": "an object for each event, a line each",
        },
    ),
    "serve": (
        "serve the agent in several processes, with Aegra on Postgres",
        {"port=N": "the port to listen on, 2024 unless given", "workers=N": "how many; 1"},
    ),
    "start": (
        "begin another clone: from this one, or from an example, on the engine's wheel",
        {
            "to=FOLDER": "where; an empty folder, or a new one",
            "source=NAME": "an example of examples/; this clone unless given",
            "name=NAME": "the new project's name; the folder's unless given",
        },
    ),
    "trust": (
        "show the modes, rules and MCP servers that a workspace brings, and trust them",
        {"show": "show the files in full, and trust nothing", "revoke": "stop trusting them"},
    ),
    "usage": (
        "print the tokens that threads have taken, and what they cost where that is known",
        {"thread=ID": "only this thread, and its last turn", "json": "as JSON"},
    ),
}
"""What each command does, and its options with their help; the Makefile passes them on."""
OF_EXTRAS = ("acp", "chat", "dev")
"""Commands that entry points name; all others are in the core, and none replaces them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command: print its lines, all up to a question, or the message of a ``UserError``."""
    options = vars(_build_parser().parse_args(arguments))
    name = options.pop("command")
    project = options.pop("project")
    try:
        if project is not None:
            use_root(project)
        start_quickly()
        if name in OF_EXTRAS:
            run = load(PARTS, name)
        else:
            run = import_module(f"modeshift.commands.{name.replace('-', '_')}").main
        collect_rarely()
        lines: list[str] = []
        for line in run(**options):
            if isinstance(line, YesOrNo):
                _print(lines)
                lines = []
                line.ask()
            else:
                lines.append(line)
    except UserError as error:
        sys.exit(make_readable(f"modeshift: {error}"))
    _print(lines)


def serve_editor() -> None:
    """The script ``modeshift-acp``, which an editor starts."""
    start_quickly()
    try:
        with leaving_out_docstrings():
            serve = load(PROGRAMS, "modeshift-acp")
    except UserError as error:
        sys.exit(make_readable(f"modeshift-acp: {error}"))
    serve()


def _print(lines: list[str]) -> None:
    try:
        # A workspace's rules and names are in these lines; none may act on the terminal.
        print(make_readable("\n".join(lines)), flush=True)
    except BrokenPipeError:  # `make modes | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("modeshift")
    parser.add_argument(
        "--project", metavar="FOLDER", type=Path, help="the clone; without it, the one you are in"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, options) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        for option, text in options.items():
            flag, _, value = option.partition("=")
            if value:
                command.add_argument(f"--{flag}", metavar=value, help=text)
            else:
                command.add_argument(f"--{flag}", action="store_true", help=text)
    return parser


if __name__ == "__main__":
    main()
