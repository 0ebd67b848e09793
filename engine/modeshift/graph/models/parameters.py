"""``check_parameters``: what settings and modes may set of a model's client, such as its effort."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from langchain_core.language_models import BaseChatModel

from modeshift.modes.errors import ConfigurationError

HARMLESS = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_sequences"),
        *("frequency_penalty", "presence_penalty", "repeat_penalty", "verbosity"),
        *("max_tokens", "max_tokens_to_sample", "max_completion_tokens", "max_output_tokens"),
        *("num_ctx", "num_predict", "reasoning", "reasoning_effort", "effort", "thinking"),
        *("thinking_budget", "thinking_level", "include_thoughts"),
    }
)
"""What a workspace's modes may set: somebody else may have written them."""
_REFUSED = (
    (
        r"retries|timeout|rate_limiter",
        "all models are asked again by one rule, and have one time limit",
    ),
    (
        r"url|base|endpoint|host|proxy|client|socket|transport|vertexai|api_version|location|project",
        "the server is set by a variable such as OPENAI_BASE_URL, which is checked",
    ),
    (
        r"key|secret|passw|credential|certificate|organization|header|query|token(?!s)|(?<!max_)model",
        "keys are set by a variable such as OPENAI_API_KEY, which is masked wherever it shows, "
        "and the model by its name",
    ),
    (r"mcp|container|^tools$|previous_response|^n$", "tools and the history are the agent's"),
)


def check_parameters(
    name: str,
    integration: type[BaseChatModel],
    given: Mapping[str, Any],
    *,
    is_trusted: bool = True,
) -> dict[str, Any]:
    """``given`` by the names that ``integration``, the client's class, takes.

    ``is_trusted``: the user set them, and not a mode of the workspace. Raises
    ``ConfigurationError`` that names the first one that cannot be set.
    """
    known = {
        name: field.alias or own
        for own, field in integration.model_fields.items()
        if own not in BaseChatModel.model_fields
        for name in (own, field.alias or own)
    }
    allowed = [one for one in sorted(known) if not _refuse(one) and (is_trusted or one in HARMLESS)]
    for parameter in given:
        if reason := _refuse(parameter):
            raise ConfigurationError(f"no parameter may set {parameter!r}: {reason}")
        if parameter not in known:
            like = get_close_matches(parameter, allowed, 1)
            hint = f" (did you mean {like[0]!r}?)" if like else ""
            raise ConfigurationError(f"the model {name!r} takes no parameter {parameter!r}{hint}")
        if parameter not in allowed:
            raise ConfigurationError(
                f"a workspace's mode may not set the parameter {parameter!r}, because it might "
                "send your requests or keys elsewhere, or store them; set MODEL_PARAMETERS, or "
                "define the mode in your own configuration folder"
            )
    return {known[parameter]: value for parameter, value in given.items()}


def _refuse(parameter: str) -> str | None:
    """Why nobody may set it; None if that depends on the model."""
    if parameter in HARMLESS:
        return None
    return next((why for names, why in _REFUSED if re.search(names, parameter)), None)
