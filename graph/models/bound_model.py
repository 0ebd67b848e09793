"""``call_model``: asks the model of a mode, and asks again within a bound if that may help."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs
from typing_extensions import override

from graph.messages.from_model import check_answer
from graph.messages.provider_form import RESPONSES, RESPONSES_UNREASONED, prepare_for_provider
from graph.models.anthropic import (
    OptionalFields,
    Service,
    record_mode,
    select_thinking,
)
from graph.models.provider_errors import (
    LONGEST_WAIT,
    TRIES,
    is_worth_another_try,
    provider_error,
    read_refused_call,
    read_retry_after,
)
from graph.models.providers import PROVIDERS, TIME_LIMIT, is_at_openai
from modes.errors import ProviderError


@dataclass(frozen=True)
class BoundModel:
    """A mode's system prompt, and the model with the mode's tools bound."""

    mode: str
    """The slug."""
    prompt: SystemMessage
    model: Runnable[LanguageModelInput, AIMessage]
    name: str
    """The model's name, as the user wrote it."""
    origin: str
    """The origin of its answers; see ``provider_form``."""
    service: Service
    time_limit: float = TIME_LIMIT
    first_wait: float = 0.5
    """Seconds before the second try if the provider does not say; twice that before the third."""


async def call_model(
    bound: BoundModel, messages: Sequence[AnyMessage], config: RunnableConfig
) -> AIMessage:
    """The model's answer to ``messages``, in a form that the history can hold.

    The clients do not retry: Anthropic's would wait for a day if the service said so. An answer
    of which a client has seen words is not asked for again.

    Raises:
        ProviderError: Without the client's own error behind it, which may hold a key.
    """
    fields = bound.service.fields
    for number in range(1, TRIES + 1):
        listener = _Listener(bound.time_limit)
        sent = _prepare(bound, messages, fields)
        arguments = {**fields.arguments, **_get_cache_key(bound.origin, config)}
        try:
            answer = await _ask(bound, sent, arguments, listener, config)
        except Exception as error:  # noqa: BLE001  # each provider's client has its own
            if refused := read_refused_call(error):
                return check_answer(refused, (), messages)
            wait = bound.first_wait * number if (said := read_retry_after(error)) is None else said
            if less := bound.service.without(error, fields):
                fields, wait = less, 0
            may_help = (less or is_worth_another_try(error)) and not listener.has_begun
            if number == TRIES or not may_help or wait > LONGEST_WAIT:
                raise provider_error(
                    error, bound.name, number, has_begun=listener.has_begun
                ) from None
            await asyncio.sleep(wait)
        else:
            if not isinstance(answer, AIMessage):
                raise ProviderError(
                    f"the model {bound.name!r} answered with a {answer.type} message"
                )
            return record_mode(check_answer(answer, listener.chunks, messages), bound.mode)
    raise AssertionError


def _prepare(
    bound: BoundModel, messages: Sequence[AnyMessage], fields: OptionalFields
) -> list[AnyMessage]:
    """The prompt, and the history in the form that this model takes."""
    history = prepare_for_provider(messages, bound.origin)
    return [bound.prompt, *select_thinking(history, fields.thinking, bound.mode)]


def _get_cache_key(origin: str, config: RunnableConfig) -> dict[str, str]:
    """The argument that sends all requests of a thread to the same cache of OpenAI's.

    A digest, for a thread's id may say whose it is. At other addresses there is none: they may
    refuse a field that they do not know.
    """
    id = config.get("configurable", {}).get("thread_id")
    if id is None or origin not in (RESPONSES, RESPONSES_UNREASONED):
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
    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        message = getattr(chunk, "message", None)
        if isinstance(message, AIMessageChunk):
            self.chunks.append(message)
        self._continue()

    @override
    def on_stream_event(self, event: Any, **kwargs: Any) -> None:
        """The same for a client that listens to LangChain's protocol events."""
        self._continue()

    def _continue(self) -> None:
        self.has_begun = True
        if self.deadline is not None:
            with suppress(RuntimeError):  # it has passed already, or this is the client's thread
                self.deadline.reschedule(asyncio.get_running_loop().time() + self._time_limit)


async def _ask(
    bound: BoundModel,
    sent: list[AnyMessage],
    arguments: dict[str, Any],
    listener: _Listener,
    config: RunnableConfig,
) -> AIMessage:
    """Raises ``TimeoutError`` if nothing comes for the time limit, whatever the client does."""
    if _may_be_streamed(bound.model, config):
        config = merge_configs(config, {"callbacks": [listener]})
    async with asyncio.timeout(bound.time_limit) as listener.deadline:
        return await bound.model.ainvoke(sent, config, **arguments)


def _may_be_streamed(model: Any, config: RunnableConfig) -> bool:
    """Whether somebody listens, or the model always streams.

    Otherwise a listener would hear nothing, and cost a tenth of a step.
    """
    callbacks = config.get("callbacks")
    if getattr(callbacks, "handlers", callbacks):
        return True
    inner = getattr(model, "bound", model)  # without the tools
    return not isinstance(inner, BaseChatModel) or bool(getattr(inner, "streaming", False))
