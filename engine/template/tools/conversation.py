"""The tools every mode has: switch the mode, hand out a task, ask the person, notes, be done."""

from functools import lru_cache
from typing import Annotated, Any, Literal

from modeshift.tools import Tool, ToolDeps, UnknownModeError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema


def _has_words(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


Text = Annotated[str, AfterValidator(_has_words)]
"""No pattern says so: models need none, and llama.cpp makes a grammar of it."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Todo(_Arguments):
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


_ToDo = Annotated[
    _Todo,
    BeforeValidator(lambda todo: {"content": todo} if isinstance(todo, str) else todo),
    WithJsonSchema({"type": "string"}),
]
"""One that is still to be done."""


def conversation_tools(deps: ToolDeps) -> list[Tool]:
    """The tools, with the modes that there are as the ones that can be named."""
    return list(_make_tools(tuple(deps.modes)))


@lru_cache(maxsize=16)  # they need nothing else of a workspace, and LangChain takes 5 ms for each
def _make_tools(slugs: tuple[str, ...]) -> tuple[Tool, ...]:
    def known(slug: str) -> str:
        if slug not in slugs:
            raise UnknownModeError(slug, slugs)
        return slug

    # The check is first: its error names the modes.
    kinds: Any = Literal[slugs] if slugs else str
    Slug = Annotated[kinds, BeforeValidator(known)]  # noqa: N806  # a type

    class Suggestion(_Arguments):
        text: Text
        mode: Annotated[str, AfterValidator(known)] | None = None

    def switch_mode(mode_slug: Slug, reason: str | None = None) -> str:
        """Ask for another mode; a person decides.

        Args:
            reason: Why, in a sentence for the person.
        """
        raise NotImplementedError("a switch is applied by the graph's switch_mode node")

    def new_task(
        mode_slug: Slug,
        message: Text,
        todos: list[_ToDo] | None = None,
    ) -> str:
        """Have a part of the work done in another conversation; a person decides.

        Its report is the result.

        Args:
            message: All that is known there, with what to report.
        """
        raise NotImplementedError("a sub-task is begun by the graph's switch_mode node")

    def ask_followup_question(question: Text, follow_up: list[Suggestion] | None = None) -> str:
        """Ask the user what only the user can know.

        Args:
            follow_up: Answers to choose from.
        """
        raise NotImplementedError("a question is answered at the graph's review node")

    def update_todo_list(todos: list[_Todo]) -> tuple[str, dict[str, Any]]:
        """Replace your todo list, which the user sees."""
        completed = sum(todo.status == "completed" for todo in todos)
        items = [todo.model_dump() for todo in todos]
        return f"Todo list: {completed} of {len(todos)} completed.", {"todos": items}

    def attempt_completion(result: Text) -> str:
        """End your turn with this answer; one without a call ends it, too.

        Call it alone.
        """
        return result

    return (
        Tool.of(switch_mode, "switch"),
        Tool.of(new_task, "subtask"),
        Tool.of(ask_followup_question, "question"),
        Tool.of(update_todo_list, "note"),
        Tool.of(attempt_completion, "complete"),
    )
