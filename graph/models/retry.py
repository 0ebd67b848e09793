"""``call_model``: asks the model, again within a bound where that may help."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig

from graph.messages.from_model import check_answer
from graph.messages.normal_form import prepare_for_provider
from graph.messages.streamed_calls import StreamedCalls
from graph.models.bound_model import BoundModel
from graph.models.optional_fields import OptionalFields
from graph.models.provider_errors import (
    LONGEST_WAIT,
    TRIES,
    is_worth_another_try,
    provider_error,
    read_retry_after,
)
from graph.models.thinking import record_mode, select_thinking
from modes.errors import ProviderError

FIRST_WAIT = 0.5
"""Seconds before the second try where the provider does not say; twice that before the third."""


async def call_model(
    bound: BoundModel, messages: Sequence[AnyMessage], config: RunnableConfig
) -> AIMessage:
    """The answer to ``messages``, fit for a history that holds them.

    Raises ``ProviderError``, without the client's own error behind it, in which a key may
    stand. The clients' own retries are off: Anthropic's would wait for a day if the service
    said so. An answer of which a client has heard words is not asked for again.
    """
    fields = bound.service.fields
    for number in range(1, TRIES + 1):
        streamed = StreamedCalls()
        listening = add_listener(streamed, bound.model, config)
        sent = _sent(bound, messages, fields)
        try:
            answer = await bound.model.ainvoke(sent, listening, **fields.arguments)
        except Exception as error:  # noqa: BLE001  # each provider's client has its own
            wait = FIRST_WAIT * number if (said := read_retry_after(error)) is None else said
            if less := bound.service.without(error, fields):
                fields, wait = less, 0
            may_help = (less or is_worth_another_try(error)) and not streamed.has_begun
            if number == TRIES or not may_help or wait > LONGEST_WAIT:
                raise provider_error(
                    error, bound.name, number, has_begun=streamed.has_begun
                ) from None
            await asyncio.sleep(wait)
        else:
            if not isinstance(answer, AIMessage):
                raise ProviderError(
                    f"the model {bound.name!r} answered with a {answer.type} message"
                )
            return record_mode(check_answer(answer, streamed, messages), bound.mode)
    raise AssertionError


def _sent(
    bound: BoundModel, messages: Sequence[AnyMessage], fields: OptionalFields
) -> list[AnyMessage]:
    """The history as this model takes it, behind the prompt."""
    taken = prepare_for_provider(messages, bound.origin)
    return [bound.prompt, *select_thinking(taken, fields.thoughts, bound.mode)]


def add_listener(
    handler: BaseCallbackHandler, model: Any, config: RunnableConfig
) -> RunnableConfig:
    """``config`` with one more handler, if the answer may be streamed.

    It is where somebody listens, or where the model always does it; without either a handler
    would cost a tenth of a step, and hear nothing.
    """
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        if not callbacks.handlers and not _always_streams(model):
            return config
        callbacks = callbacks.copy()
        callbacks.add_handler(handler)
    else:
        callbacks = [*(callbacks or ()), handler]
    return {**config, "callbacks": callbacks}


def _always_streams(model: Any) -> bool:
    """A model is wrapped once its tools are bound; what is no known wrapping may well stream."""
    inner = getattr(model, "bound", model)
    return not isinstance(inner, BaseChatModel) or bool(getattr(inner, "streaming", False))
