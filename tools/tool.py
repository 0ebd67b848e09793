"""``Tool``: a function that the model can call, with what the rules must know of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Self

from langchain_core.tools import BaseTool, StructuredTool
from typing_extensions import TypedDict, Unpack

from modes.effects import EFFECTS, EffectName
from modes.errors import ConfigurationError
from modes.toolspec import ToolSpec

ROOT = Path(__file__).parent.parent


class Rest(TypedDict, total=False):
    """The fields of ``ToolSpec`` that not every tool needs."""

    paths: tuple[str, ...]
    reads_below: bool
    command: str
    url: str
    sandboxed: bool


@dataclass(frozen=True)
class Tool:
    """A LangChain tool and its ``ToolSpec``."""

    spec: ToolSpec
    runnable: BaseTool
    file: str
    """Where it is written, for messages about it."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        effect: EffectName,
        addendum: str = "",
        *,
        has_artifact: bool = False,
        **rest: Unpack[Rest],
    ) -> Self:
        """Make a tool of ``function``; the model reads its docstring (Google style).

        A plain function runs in a worker thread, so it may block; a coroutine function may not.
        It returns text (with the effect ``note`` a pair of text and state updates; if it
        ``has_artifact``, of text and what only clients get), and raises ``ToolFailedError`` with
        a text that tells the model what to do instead. ``addendum`` follows the docstring's
        description. ``rest`` are the other fields of ``ToolSpec``; a tool that changes files
        names in ``paths`` all its arguments that say which.

        Raises ``ConfigurationError`` for an unknown effect, and for an argument that the
        function does not have.
        """
        file = _file_of(function)
        name = function.__name__
        if effect not in EFFECTS:
            raise ConfigurationError(
                f"{file}: {name} has the unknown effect {effect!r}; "
                f"the effects are: {', '.join(EFFECTS)}"
            )
        row, is_async = EFFECTS[effect], iscoroutinefunction(function)
        is_pair = has_artifact or row.updates_state
        runnable = StructuredTool.from_function(
            func=None if is_async else function,
            coroutine=function if is_async else None,
            parse_docstring=True,
            response_format="content_and_artifact" if is_pair else "content",
        )
        runnable.description += addendum
        spec = ToolSpec(name, row, **rest)
        _check_arguments(f"{file}: {name}", spec, list(runnable.args))
        return cls(spec, runnable, file)

    def in_group(self, group: str | None) -> Self:
        """The same tool, for the modes that have the group; None for every mode."""
        return replace(self, spec=replace(self.spec, group=group))


def _file_of(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename) if code is not None else Path("?")
    return str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)


def _check_arguments(tool: str, spec: ToolSpec, has: list[str]) -> None:
    named = {"command": spec.command, "url": spec.url, **{path: path for path in spec.paths}}
    for word, argument in named.items():
        if argument is not None and argument not in has:
            how = word if word in ("command", "url") else "paths"
            raise ConfigurationError(
                f"{tool} has no argument {argument!r}, which {how}= names; "
                f"its arguments are: {', '.join(has) or 'none'}"
            )
    if spec.paths and spec.effect.reaches_network:
        raise ConfigurationError(
            f"{tool} names paths= with the effect {spec.effect.name!r}, under which no file is "
            "judged; let another tool read or write it"
        )
    if spec.url is not None and not spec.effect.reaches_network:
        raise ConfigurationError(
            f"{tool} names url= with the effect {spec.effect.name!r}; what fetches has 'network'"
        )
