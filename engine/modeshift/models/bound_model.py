"""``call_model``: asks the model of a mode, and asks again within a bound if that may help."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, SystemMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs
from typing_extensions import override

from modeshift.messages.from_model import check_answer
from modeshift.messages.instructions import (
    RESPONSES,
    RESPONSES_UNREASONED,
    Instruction,
    append_instructions,
    get_model_api,
    insert_instructions,
    list_pictured,
    make_chat_history,
    mark_known,
    prepare_for_provider,
)
from modeshift.messages.thinking import record_prefix, select_thinking
from modeshift.models import provider_errors
from modeshift.models.providers import PROVIDERS, TIME_LIMIT, is_at_openai
from modeshift.models.service import NEED_NOTHING, ModelService, OptionalFields, ToolsWay
from modeshift.modes.errors import ProviderError
from modeshift.modes.plain_data import JsonObject

Declared = tuple[Runnable[LanguageModelInput, AIMessage], str]
"""A model with its tools declared, and a digest of them and the system prompt."""


@dataclass(frozen=True)
class BoundModel:
    """A model, with the prompt and the tools that it gets in one mode."""

    prompt: SystemMessage
    """The system prompt, which is the same in every mode."""
    model: BaseChatModel
    tools: Mapping[str, Any]
    """All tools of the process by name, in the form that ``bind_tools`` takes."""
    names: tuple[str, ...]
    """The names of the mode's tools."""
    name: str
    """The model's name, as the user wrote it."""
    service: ModelService
    window: int | None = None
    """How many tokens the model reads at most; None if that is not known."""
    time_limit: float = TIME_LIMIT
    first_wait: float = 0.5
    """Seconds before the second try if the provider names none; before the third, twice that."""
    _declared: dict[tuple[ToolsWay, tuple[str, ...], int | None], Declared] = field(
        default_factory=dict
    )

    @cached_property
    def api(self) -> str:
        """The API through which the model is asked; see ``provider_form``."""
        return get_model_api(self.model, self.name.partition(":")[0])

    @property
    def is_responses(self) -> bool:
        """Whether the model is asked through OpenAI's Responses API."""
        return bool(getattr(self.model, "use_responses_api", False))

    def write(self, messages: list[AnyMessage], *, splits_calls: bool) -> list[AnyMessage]:
        """The messages in the wire format of its API."""
        origin = None if self.is_responses else getattr(self.model, "origin", None)
        if origin is None:
            return messages
        return make_chat_history(messages, origin, splits_calls=splits_calls)

    def find_fields(self, instructions: Sequence[Instruction]) -> OptionalFields:
        """The request's fields; a thread keeps its way where that needs nothing of a server."""
        fields = self.service.fields
        if fields.way not in NEED_NOTHING:
            return fields
        way = instructions[0].get("way") if instructions else None
        return replace(fields, way="append" if way == "append" else "rewrite")

    def declare(self, way: ToolsWay, instructions: Sequence[Instruction]) -> Declared:
        """The model with its tools, for a thread with these ``instructions``."""
        first = tuple(instructions[0]["tools"]) if instructions else self.names
        key = way, first if way == "tool_changes" else (), self.service.max_tokens
        if key not in self._declared:
            self._declared[key] = self._declare(way, first)
        return self._declared[key]

    def _declare(self, way: ToolsWay, first: Sequence[str]) -> Declared:
        names = self.names if way == "rewrite" else [*self.tools]
        # Else the Responses API makes the model give every argument, optional ones too.
        options: dict[str, bool] = {"strict": False} if self.is_responses else {}
        bound: Any = _limit(self.model, self.service.max_tokens)
        declared: Any = []
        if names:
            bound = bound.bind_tools([self.tools[name] for name in names], **options)
            declared = getattr(bound, "kwargs", {}).get("tools")
        if way == "tool_changes":  # what the thread's first mode lacks is not shown yet
            later = {"defer_loading": True}
            declared = [tool if tool["name"] in first else {**tool, **later} for tool in declared]
            bound = bound.bind(tools=declared)
        content = json.dumps([self.prompt.text, declared], sort_keys=True, default=str)
        return bound, sha256(content.encode()).hexdigest()[:16]


def _limit(model: BaseChatModel, max_tokens: int | None) -> BaseChatModel:
    """The model with a limit for an answer, unless the user has set one."""
    fields = [name for name in ("max_tokens", "num_predict") if name in type(model).model_fields]
    if max_tokens is None or any(getattr(model, name) is not None for name in fields):
        return model
    return model.model_copy(update=dict.fromkeys(fields, max_tokens))


def _choose_tools(way: ToolsWay, names: Sequence[str], *, is_responses: bool) -> JsonObject:
    """The arguments of a request that say which of the declared tools the model may call."""
    if way != "allowed_tools":
        return {}
    kind = "function"
    if is_responses:
        listed = [{"type": kind, "name": name} for name in names]
        return {"tool_choice": {"type": way, "mode": "auto", "tools": listed}}
    chosen = {"mode": "auto", "tools": [{"type": kind, kind: {"name": name}} for name in names]}
    return {"tool_choice": {"type": way, way: chosen}}


def _build_message(
    way: ToolsWay, declared: Collection[str], note: Instruction, before: Instruction
) -> SystemMessage:
    if way != "tool_changes":
        # The newest of OpenAI's models call the role so; all of them take it.
        return SystemMessage(note["text"], additional_kwargs={"__openai_role__": "developer"})
    had = before["tools"]
    changes = [
        *(("tool_removal", name) for name in had if name not in note["tools"]),
        *(("tool_addition", name) for name in note["tools"] if name not in had),
    ]
    blocks: list[str | dict[Any, Any]] = [
        {"type": kind, "tool": {"type": "tool_reference", "name": name}}
        for kind, name in changes
        if name in declared  # the service refuses a request that names any other
    ]
    return SystemMessage([*blocks, {"type": "text", "text": note["text"]}])


async def call_model(
    bound: BoundModel,
    messages: Sequence[AnyMessage],
    config: RunnableConfig,
    instructions: Sequence[Instruction] = (),
    taken: Collection[str] = (),
) -> AIMessage:
    """The model's answer to ``messages``, in a form that the history can hold.

    ``instructions`` are those whose message is among them; no call gets one of the ids ``taken``.

    The clients do not retry: Anthropic's would wait for a day if the service said so. An answer
    of which a client has seen words is not asked for again.

    Raises:
        ProviderError: Without the client's own error behind it, which may hold a key.
    """
    fields = initial = bound.find_fields(instructions)
    unshown = frozenset[str]()
    tries = 1
    while True:
        listener = _Listener(bound.time_limit)
        model, prefix, sent = _prepare(bound, messages, instructions, fields, unshown)
        arguments = {
            **fields.arguments,
            **_choose_tools(fields.way, bound.names, is_responses=bound.is_responses),
            **_get_cache_key(bound.api, config),
        }
        try:
            written = bound.write(sent, splits_calls=fields.splits_calls)
            answer = await _ask(bound, model, written, arguments, listener, config)
        except Exception as error:  # noqa: BLE001  # each provider's client has its own
            if refused := provider_errors.read_refused_call(error):
                return check_answer(refused, (), messages, taken)
            if not listener.has_begun and (less := _leave_out(error, fields, unshown, sent)):
                fields, unshown = less
                continue
            retry_after = provider_errors.read_retry_after(error)
            wait = bound.first_wait * tries if retry_after is None else retry_after
            may_help = provider_errors.is_worth_another_try(error) and not listener.has_begun
            if (
                tries == provider_errors.TRIES
                or not may_help
                or wait > provider_errors.LONGEST_WAIT
            ):
                raise provider_errors.provider_error(
                    error, bound.name, tries, has_begun=listener.has_begun
                ) from None
            tries += 1
            await asyncio.sleep(wait)
        else:
            if not isinstance(answer, AIMessage):
                raise ProviderError(
                    f"the model {bound.name!r} answered with a {answer.type} message"
                )
            if unshown or fields is not initial:
                bound.service.learn(initial, fields, unshown)
            checked = check_answer(answer, listener.chunks, messages, taken)
            return record_prefix(checked, prefix, messages)


def _leave_out(
    error: Exception, fields: OptionalFields, unshown: frozenset[str], sent: list[AnyMessage]
) -> tuple[OptionalFields, frozenset[str]] | None:
    """The fields and the unshown images to try next; None if nothing is left to leave out."""
    if (less := fields.without(error)) is not None:
        return less, unshown
    if (pictured := list_pictured(sent)) and provider_errors.is_refused(error):
        # An image that a service cannot read would be in each request from now on.
        return fields, unshown | pictured
    if provider_errors.is_refused_unexplained(error) and fields != fields.least:
        return fields.least, frozenset()
    return None


def _prepare(
    bound: BoundModel,
    messages: Sequence[AnyMessage],
    instructions: Sequence[Instruction],
    fields: OptionalFields,
    unshown: frozenset[str],
) -> tuple[Runnable[LanguageModelInput, AIMessage], str, list[AnyMessage]]:
    """The model, a digest of its prompt and tools, and what to send: prompt, then history."""
    model, prefix = bound.declare(fields.way, instructions)
    if fields.way in NEED_NOTHING:
        history = append_instructions(messages, instructions)
    else:
        build = partial(_build_message, fields.way, bound.tools)
        history = [*insert_instructions(messages, instructions, build)]
    history = prepare_for_provider(history, bound.api, bound.service.unshown | unshown)
    if fields.thinking != "all":
        history = select_thinking(history, prefix if fields.thinking == "of this prefix" else None)
    sent = [bound.prompt, *history]
    return model, prefix, mark_known(sent, fields.mark) if fields.mark else sent


def _get_cache_key(api: str, config: RunnableConfig) -> dict[str, str]:
    """The argument that sends all requests of a thread to the same cache of OpenAI's.

    A digest, for a thread's id may say whose it is. At other addresses there is none: they may
    refuse a field that they do not know.
    """
    id = config.get("configurable", {}).get("thread_id")
    if id is None or api not in (RESPONSES, RESPONSES_UNREASONED):
        return {}
    if not is_at_openai(PROVIDERS["openai"].address()):
        return {}
    return {"prompt_cache_key": sha256(f"thread {id}".encode()).hexdigest()[:32]}


class _Listener(BaseCallbackHandler):
    """Keeps the chunks of a streamed answer: LangChain gives only their sum."""

    # If starts were not ignored, LangChain would format the whole history at every step.
    ignore_agent = ignore_chain = ignore_retriever = ignore_retry = ignore_custom_event = True
    ignore_chat_model = True
    raise_error = True
    run_inline = True

    def __init__(self, time_limit: float) -> None:
        self.has_begun = False
        """Whether something of the answer has come, and perhaps been shown."""
        self.chunks: list[AIMessageChunk] = []
        self.deadline: asyncio.Timeout | None = None
        self._time_limit = time_limit

    @override
    def on_llm_new_token(self, token: object, *, chunk: object = None, **kwargs: object) -> None:
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk):
            self.chunks.append(message)
        self._continue()

    @override
    def on_stream_event(self, event: object, **kwargs: object) -> None:
        """As ``on_llm_new_token``, for a client that listens to LangChain's protocol events."""
        self._continue()

    def _continue(self) -> None:
        self.has_begun = True
        if self.deadline is not None:
            with suppress(RuntimeError):  # it has passed already, or this is the client's thread
                self.deadline.reschedule(asyncio.get_running_loop().time() + self._time_limit)


async def _ask(
    bound: BoundModel,
    model: Runnable[LanguageModelInput, AIMessage],
    sent: list[AnyMessage],
    arguments: JsonObject,
    listener: _Listener,
    config: RunnableConfig,
) -> AIMessage:
    """Ask once; raises ``TimeoutError`` if nothing comes for the time limit."""
    if _may_be_streamed(bound.model, config):
        config = merge_configs(config, {"callbacks": [listener]})
    # They are messages already: LangChain would look at each of them twice at every step.
    asked = ChatPromptValue.model_construct(messages=sent)
    async with asyncio.timeout(bound.time_limit) as listener.deadline:
        return await model.ainvoke(asked, config, **arguments)


def _may_be_streamed(model: BaseChatModel, config: RunnableConfig) -> bool:
    """Whether somebody listens, or the model always streams.

    Otherwise a listener would hear nothing, and cost a tenth of a step.
    """
    callbacks = config.get("callbacks")
    if getattr(callbacks, "handlers", callbacks):
        return True
    return bool(getattr(model, "streaming", False))
