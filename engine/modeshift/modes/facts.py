"""Facts: what code knows of what has happened, which conditions of edges are about."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field

from modeshift.modes.plain_data import PlainData


def _check_inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"{name!r} is not below the workspace")
    return name


class ProjectTests(PlainData):
    """The owner's test command, from ``modes/project.yaml``."""

    command: Annotated[str, Field(pattern=r"^\S[^\n]*$")]
    files: tuple[Annotated[str, AfterValidator(_check_inside)], ...] = ()
    """Files and folders that say what the command does, relative to the workspace."""


Scope = Literal["mode", "conversation", "workspace"]


@dataclass(frozen=True, kw_only=True)
class Done:
    """A call that has run, or may have: what a fact can follow from."""

    tool: str
    mode: str
    is_success: bool
    written: tuple[str, ...] = ()
    """The files that an edit wrote, relative to the workspace."""
    in_limit: tuple[str, ...] = ()
    """The files among them that the mode's edit limit names; none without a limit."""
    may_have_written: bool = False
    """Whether it could change a file, and so may have: an edit, a command with a writable
    workspace, a call of an MCP server, and whatever ended unseen."""
    line: str | None = None
    """The command line that /bin/sh ran; None of one that goes on in the background."""
    folder: str = "."
    """Where it ran, relative to the workspace."""
    exit_code: int | None = None
    """As the process said; None for one that did not end by itself."""
    is_answer: bool = False
    """Whether a person answered a question."""
    was_alone: bool = True
    """Whether no command ran in the background meanwhile."""
    runs_tests: bool = False
    """Whether it is the test command that the owner names, word for word, in the workspace's
    own folder and in the foreground."""


def end_unseen(mode: str) -> Done:
    """A call of which nobody knows whether it ran, and how far."""
    return Done(tool="", mode=mode, is_success=False, may_have_written=True)


@dataclass(frozen=True)
class Fact:
    """Something that is true or not; a clone's own are made with ``Fact.of``."""

    name: str
    says: str
    """What is so when it is true, in words."""
    after: Callable[[bool, Done], bool]
    """What it is after a call, from what it was before."""
    scope: Scope = "mode"
    """``mode``: false when a mode is entered; true, too, where it became true in a sub-task.
    ``conversation``: a sub-task has its own. ``workspace``: one for a thread and its sub-tasks."""
    lines: tuple[str, ...] = ()
    """Command lines that it can follow from: ``make prove`` tries them beside its own."""
    files: tuple[str, ...] = ()
    """Files that it can follow from, for the same."""

    @classmethod
    def of(cls, function: Callable[[bool, Done], bool], scope: Scope = "mode") -> Self:
        """A fact named as the function, which says what it is after a call that has run."""
        says = (getdoc(function) or function.__name__).partition("\n")[0]
        return cls(function.__name__, says, function, scope)


def files_changed(before: bool, done: Done) -> bool:
    """Since the mode was entered, something ran that could change a file."""
    return before or done.may_have_written


def tests_passed(before: bool, done: Done) -> bool:
    """The test command ended with 0, and since it began nothing else could change a file."""
    if done.runs_tests:
        return done.exit_code == 0 and done.was_alone
    return before and not done.may_have_written


def command_failed(before: bool, done: Done) -> bool:
    """The last command ended with another code than 0, or not by itself."""
    return before if done.line is None else done.exit_code != 0


def plan_written(before: bool, done: Done) -> bool:
    """Since the mode was entered, a file that its edit limit names was written."""
    return before or bool(done.in_limit)


def asked_user(before: bool, done: Done) -> bool:
    """A person has answered a question."""
    return before or done.is_answer


def tests_changed(before: bool, done: Done) -> bool:
    """A test file is not as it was when the thread began."""
    raise NotImplementedError("is computed from the files")


APPROVED = "plan_approved"
"""No call approves a plan: ``apply_switch`` does."""
BUILT_IN = (
    Fact.of(files_changed),
    Fact.of(tests_passed, "workspace"),
    Fact.of(tests_changed, "workspace"),
    Fact.of(command_failed, "conversation"),
    Fact.of(plan_written),
    Fact.of(asked_user, "conversation"),
    Fact(
        APPROVED, "A person has approved a plan with a switch.", lambda was, _: was, "conversation"
    ),
)
NEED_TESTS = ("tests_passed", "tests_changed")
"""The facts that need the owner's ``tests``."""
