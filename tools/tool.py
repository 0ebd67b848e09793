"""``Tool``: a function the model can call, with what the rules must know of it."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Self

from langchain_core.tools import BaseTool, StructuredTool
from typing_extensions import TypedDict, Unpack

from modes.toolspec import Effect, ToolGroup, ToolSpec


class Rest(TypedDict, total=False):
    """The fields of ``ToolSpec`` that not every tool needs."""

    paths: tuple[str, ...]
    reads_below: bool
    command: str
    sandboxed: bool


@dataclass(frozen=True)
class Tool:
    """A LangChain tool and its ``ToolSpec``."""

    spec: ToolSpec
    runnable: BaseTool

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        effect: Effect,
        group: ToolGroup | None,
        addendum: str = "",
        *,
        has_artifact: bool = False,
        **rest: Unpack[Rest],
    ) -> Self:
        """Make a tool of ``function``; the model reads its docstring (Google style).

        A plain function runs in a worker thread, so it may block; a coroutine
        function may not. It returns text (with ``Effect.NOTE`` a pair of text and
        state updates; if it ``has_artifact``, of text and what only clients get), and
        raises ``ToolFailedError`` with a text that tells the model what to do instead.
        Every mode has a tool whose ``group`` is None.
        ``addendum`` follows the docstring's description. ``rest`` are the other
        fields of ``ToolSpec``; a tool that changes files names in ``paths`` all its
        arguments that say which.
        """
        is_async = iscoroutinefunction(function)
        is_pair = has_artifact or effect is Effect.NOTE
        runnable = StructuredTool.from_function(
            func=None if is_async else function,
            coroutine=function if is_async else None,
            parse_docstring=True,
            response_format="content_and_artifact" if is_pair else "content",
        )
        runnable.description += addendum
        return cls(ToolSpec(runnable.name, effect, group, **rest), runnable)
