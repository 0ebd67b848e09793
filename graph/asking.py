"""``answered``: asks the model, again within a bound where that may help."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs

from graph.answer import StreamedCalls, usable
from graph.provider_errors import LONGEST_WAIT, TRIES, explained, is_worth_another_try, seconds

FIRST_WAIT = 0.5
"""Seconds before the second try where the provider does not say; twice that before the third."""


async def answered(
    model: Runnable[LanguageModelInput, AIMessage],
    name: str,
    sent: Sequence[Any],
    earlier: Sequence[AnyMessage],
    config: RunnableConfig,
) -> AIMessage:
    """The model's answer to ``sent``, fit for a history that holds ``earlier``.

    Raises ``ProviderError``. The clients' own retries are off: Anthropic's would wait for a
    day if the service said so. An answer of which a client has heard words is not asked for
    again.
    """
    for number in range(1, TRIES + 1):
        streamed = StreamedCalls()
        listening = merge_configs(config, {"callbacks": [streamed]})
        try:
            answer = await model.ainvoke(list(sent), listening)
        except Exception as error:  # each provider's client has its own
            wait = FIRST_WAIT * number if (said := seconds(error)) is None else said
            may_help = is_worth_another_try(error) and not streamed.has_begun
            if number == TRIES or not may_help or wait > LONGEST_WAIT:
                raise explained(error, name, number, has_begun=streamed.has_begun) from error
            await asyncio.sleep(wait)
        else:
            return usable(answer, streamed, earlier)
    raise AssertionError
