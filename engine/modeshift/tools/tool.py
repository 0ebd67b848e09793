"""``Tool``: a function that the model can call; ``ToolDeps``: what it can work on."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import Parameter, iscoroutine, iscoroutinefunction, signature
from pathlib import Path
from typing import Any, Self

from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_function
from pydantic import BaseModel
from typing_extensions import TypedDict, Unpack, override

from modeshift.modes.effects import EFFECTS, EffectName, ToolSpec
from modeshift.modes.errors import ConfigurationError, ToolFailedError
from modeshift.modes.mode import Mode
from modeshift.modes.plain_data import JsonObject
from modeshift.project import find_root
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.workspace.workspace import Workspace


@dataclass(frozen=True)
class ToolDeps:
    """The argument of each function in the list of tools, which makes the tools from it."""

    workspace: Workspace
    modes: Mapping[str, Mode] = field(default_factory=dict)
    """The modes that can be named, by slug."""
    commands: Commands = field(default_factory=Commands)
    allowed_hosts: tuple[str, ...] = ()
    """``host`` or ``host:port``: where ``tools.network`` may go although it is not public."""


class Rest(TypedDict, total=False):
    """The fields of ``ToolSpec`` that not every tool needs."""

    paths: tuple[str, ...]
    reads_below: bool
    command: str
    url: str
    subject: tuple[str, ...]
    may_be_remembered: bool
    sandboxed: bool


@dataclass(frozen=True)
class Tool:
    """A LangChain tool, and what the rules must know of it."""

    spec: ToolSpec
    runnable: BaseTool
    file: str
    """Where it is written, for messages about it."""

    @cached_property
    def declared(self) -> JsonObject:
        """Its name, description and parameters, as short as they can be, for ``bind_tools``."""
        function = convert_to_openai_function(self.runnable)
        if self.spec.served is None:
            function["parameters"] = _shorten(function["parameters"])
        return function

    @classmethod
    def of(
        cls,
        function: Callable[..., object],
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

        Raises ``ConfigurationError`` for an unknown effect, for an argument that the function
        does not have, and for a function without docstring or types.
        """
        file = _file_of(function)
        name = function.__name__
        if effect not in EFFECTS:
            raise ConfigurationError(
                f"{file}: {name} has the unknown effect {effect!r}; "
                f"the effects are: {', '.join(EFFECTS)}"
            )
        row = EFFECTS[effect]
        is_pair = has_artifact or row.updates_state
        try:
            runnable = _make_runnable(function, addendum, is_pair=is_pair)
        except ValueError as error:  # no docstring, or one of other arguments
            raise ConfigurationError(f"{file}: {name}: {error}") from error
        schema, told = runnable.args_schema, runnable.tool_call_schema
        assert isinstance(schema, type) and issubclass(schema, BaseModel)
        assert isinstance(told, type) and issubclass(told, BaseModel)
        # Those with InjectedToolArg, which LangChain hides from the model.
        state = tuple(each for each in schema.model_fields if each not in told.model_fields)
        spec = ToolSpec(name, row, state=state, **rest)
        has = {each: field.annotation for each, field in schema.model_fields.items()}
        parameters = signature(function).parameters.values()
        plain = {each.name for each in parameters if each.kind not in _STARRED}
        for problem in _find_problems(spec, has, plain):
            raise ConfigurationError(f"{file}: {name} {problem}")
        return cls(spec, runnable, file)

    def in_group(self, group: str | None) -> Self:
        """The same tool, for the modes that have the group; None for every mode."""
        return replace(self, spec=replace(self.spec, group=group))


_STARRED = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_UNTOLD = ("title", "maxItems")
_PLAIN = {
    "additionalProperties": (False,),
    "default": ("", 0, False),
    "minimum": (0, 1),
    "minItems": (0, 1),
}
"""Values that tell a model nothing, as they are the usual ones."""


def _shorten(schema: JsonObject) -> JsonObject:
    """Without what tells a model nothing: titles, null, bounds that nobody would pass."""
    match schema:
        case {"anyOf": [dict(only), {"type": "null"}], "default": None, **rest}:
            return _shorten(only | rest)
    short = {key: value for key, value in schema.items() if key not in _UNTOLD}
    for key, plain in _PLAIN.items():
        if short.get(key) in plain:
            del short[key]
    if "items" in short:
        short["items"] = _shorten(short["items"])
    if "properties" in short:
        short["properties"] = {name: _shorten(value) for name, value in short["properties"].items()}
    return short


class _Runnable(StructuredTool):
    @override
    def _run(self, *args: Any, config: RunnableConfig, **rest: Any) -> Any:
        return _check_result(super()._run(*args, config=config, **rest))

    @override
    async def _arun(self, *args: Any, config: RunnableConfig, **rest: Any) -> Any:
        try:
            return _check_result(await super()._arun(*args, config=config, **rest))
        except SystemExit as error:  # LangChain's task would end the event loop with it
            raise ToolFailedError(f"SystemExit: {error}") from None


def _check_result(result: object) -> object:
    """What a function has returned; LangChain takes a message, and joins a list without gaps."""
    if isinstance(result, ToolOutputMixin | Awaitable | Iterator | AsyncIterator):
        kind = type(result).__name__
        if iscoroutine(result):
            result.close()  # or Python warns later that nobody has awaited it
        raise ToolFailedError(f"it gave a {kind} instead of text, and may have run; tell the user")
    if isinstance(result, list) and all(isinstance(each, str) for each in result):
        return "\n".join(result)
    return result


_made: dict[object, tuple[object, StructuredTool]] = {}
"""The last LangChain tool of a function's code, and what else it was made from."""


def _make_runnable(function: Callable[..., object], addendum: str, *, is_pair: bool) -> BaseTool:
    """A LangChain tool of ``function``.

    Its schemas take LangChain 5 ms. They are made once for a function that is defined again, as
    inner functions are for each workspace, with the same name, types and text.
    """
    kind = "coroutine" if iscoroutinefunction(function) else "func"
    code, defaults = (getattr(function, name, None) for name in ("__code__", "__defaults__"))
    names = (function.__name__, function.__doc__, addendum, is_pair)
    key = (*names, function.__annotations__, defaults)
    if code in _made and _made[code][0] == key:
        return _made[code][1].model_copy(update={kind: function})
    options: dict[str, Any] = {"func": None, kind: function}
    runnable = _Runnable.from_function(
        **options,
        parse_docstring=True,
        response_format="content_and_artifact" if is_pair else "content",
    )
    runnable.description += addendum
    _made[code] = key, runnable
    return runnable


def _file_of(function: Callable[..., object]) -> str:
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename) if code is not None else Path("?")
    root = find_root()
    return str(file.relative_to(root) if file.is_relative_to(root) else file)


def _find_problems(
    spec: ToolSpec, has: Mapping[str, object], parameters: set[str]
) -> Iterator[str]:
    """What does not fit; ``has`` are the arguments of a call, with their types."""
    effect, name = spec.effect, repr(spec.effect.name)
    # LangChain's own config gets to a function that has it, and nothing else of that name.
    if taken := parameters ^ has.keys() ^ ({"config"} & parameters):
        why = "which no call reaches; give it another name, without stars"
        yield f"has the argument {min(taken)!r}, {why}"
    named = [("command", spec.command), ("url", spec.url)]
    named += [("paths", path) for path in spec.paths]
    named += [("subject", argument) for argument in spec.subject]
    for how, argument in named:
        if argument is not None and argument not in has:
            its = f"its arguments are: {', '.join(has) or 'none'}"
            yield f"has no argument {argument!r}, which {how}= names; {its}"
        elif argument is not None and how != "subject" and has[argument] not in (str, str | None):
            yield f"has the argument {argument!r}, which {how}= names: it has to be one str"
    if spec.paths and effect.stays_outside:
        yield (
            f"names paths= with the effect {name}, under which no file is judged; let another "
            "tool read or write it"
        )
    if spec.url is not None and not effect.reaches_network:
        yield f"names url= with the effect {name}; what fetches has 'network'"
    if spec.may_be_remembered and not effect.can_be_allowed:
        yield (
            f"has may_be_remembered= with the effect {name}, on which a person decides every "
            "time; leave it out"
        )
