"""``Tool``: a function the model can call, with what the rules must know of it."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Self

from langchain_core.tools import BaseTool, StructuredTool

from modes.mode import ToolGroup
from modes.toolspec import Effect, ToolSpec


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
        paths: tuple[str, ...] = (),
        addendum: str = "",
    ) -> Self:
        """Make a tool of ``function``; the model reads its docstring (Google style).

        A plain function runs in a worker thread, so it may block; a coroutine
        function may not. It returns text (with ``Effect.NOTE`` a pair of text and
        state updates), and raises ``ToolFailedError`` with a text that tells the
        model what to do instead. Every mode has a tool whose ``group`` is None. A
        tool that changes files names in ``paths`` its arguments that say which.
        ``addendum`` follows the docstring's description.
        """
        is_async = iscoroutinefunction(function)
        runnable = StructuredTool.from_function(
            func=None if is_async else function,
            coroutine=function if is_async else None,
            parse_docstring=True,
            response_format="content_and_artifact" if effect is Effect.NOTE else "content",
        )
        runnable.description += addendum
        return cls(ToolSpec(runnable.name, effect, group, paths), runnable)
