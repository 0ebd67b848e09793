"""The tools every mode has: switch the mode, hand out a task, ask the person, notes, be done."""

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from modeshift.tools import Tool, ToolDeps, UnknownModeError


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Todo(_Arguments):
    """One item of the agent's todo list."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


def conversation_tools(deps: ToolDeps) -> list[Tool]:
    """The tools, with the modes that there are as the ones that can be named."""
    return list(_make_tools(tuple(deps.modes)))


@lru_cache(maxsize=16)  # they need nothing else of a workspace, and LangChain takes 5 ms for each
def _make_tools(slugs: tuple[str, ...]) -> tuple[Tool, ...]:
    def known(slug: str) -> str:
        if slug not in slugs:
            raise UnknownModeError(slug, slugs)
        return slug

    Slug = Annotated[str, AfterValidator(known)]  # noqa: N806  # a type

    class Suggestion(_Arguments):
        """An answer to choose from."""

        text: str = Field(min_length=1)
        mode: Slug | None = Field(None, description="The mode to switch to with this answer.")

    def switch_mode(mode_slug: Slug, reason: Annotated[str, Field(pattern=r"\S")]) -> str:
        """Ask for another mode. A person decides; until then nothing changes.

        Args:
            mode_slug: The mode to switch to.
            reason: Why, in a sentence for the person who decides.
        """
        raise NotImplementedError("a switch is applied by the graph's switch_mode node")

    def new_task(
        mode_slug: Slug,
        message: Annotated[str, Field(pattern=r"\S")],
        todos: list[Todo] | None = None,
    ) -> str:
        """Have a part of the work done in a mode that fits it, in a conversation of its own.

        A person decides. What the sub-task reports at its end is the result. Several calls in a
        message are done in their order.

        Args:
            mode_slug: The mode to do it in.
            message: All that is needed to do it: your conversation is not seen there. Say what to
                do and what not, what is known, and what to report.
            todos: The todo list to begin with, if there are several steps.
        """
        raise NotImplementedError("a sub-task is begun by the graph's switch_mode node")

    def ask_followup_question(
        question: Annotated[str, Field(min_length=1)], follow_up: list[Suggestion] | None = None
    ) -> str:
        """Ask the user what only the user can know; the answer is the result.

        Args:
            question: The question.
            follow_up: Two to four answers to choose from, if there are obvious ones.
        """
        raise NotImplementedError("a question is answered at the graph's review node")

    def update_todo_list(todos: list[Todo]) -> tuple[str, dict[str, Any]]:
        """Replace your todo list, which the user sees; for work of several steps.

        Args:
            todos: The whole list, in order, each item with its status.
        """
        completed = sum(todo.status == "completed" for todo in todos)
        items = [todo.model_dump() for todo in todos]
        return f"Todo list: {completed} of {len(todos)} completed.", {"todos": items}

    def attempt_completion(result: Annotated[str, Field(min_length=1)]) -> str:
        """End your turn with the result as your answer; an answer without a call ends it, too.

        Call it alone.

        Args:
            result: What was done and how it was checked, for the user to read.
        """
        return result

    return (
        Tool.of(switch_mode, "switch"),
        Tool.of(new_task, "subtask"),
        Tool.of(ask_followup_question, "question"),
        Tool.of(update_todo_list, "note"),
        Tool.of(attempt_completion, "complete"),
    )
