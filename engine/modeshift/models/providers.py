"""``Provider``: what is known of a provider, and which parameters of its models may be set."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

from modeshift.modes.errors import ConfigurationError
from modeshift.modes.plain_data import JsonObject
from modeshift.project import say_how_to_add

TIME_LIMIT = 600.0
"""Seconds without a byte before a request is given up, with every provider."""
_LIMITS: JsonObject = {
    "max_retries": 0,  # models/bound_model.py decides how often a model is asked
    **dict.fromkeys(("timeout", "request_timeout", "default_request_timeout"), TIME_LIMIT),
    # LangChain's default ends a stream of OpenAI's after two minutes of silent reasoning.
    "stream_chunk_timeout": TIME_LIMIT,
    "client_kwargs": {"timeout": TIME_LIMIT},  # of Ollama's
}
"""Fields of integrations that set a limit, under all their names, with our values."""


def get_limits(integration: type[BaseChatModel]) -> JsonObject:
    """The arguments that make a client not retry, and give up after the time limit."""
    return {
        field.alias or name: _LIMITS[name]
        for name, field in integration.model_fields.items()
        if name in _LIMITS
    }


@dataclass(frozen=True)
class Provider:
    """One provider; ``extra`` is its name in ``pyproject.toml``."""

    extra: str
    key: str | None = None
    """The variable that holds the key; None if there is no key."""
    addresses: tuple[str, ...] = ()
    """The variables that send its requests to another server, the usual one last."""
    default_address: str = ""
    needs_key_elsewhere: bool = True
    """Whether a server at another address needs a key too."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Arguments for its client beside the model's name."""

    def address(self) -> str | None:
        """The server that the environment names instead of the provider's own."""
        return next((value for name in self.addresses if (value := os.environ.get(name))), None)

    def list_problems(self) -> list[str]:
        """What is missing or malformed, each as the end of "it needs ..."."""
        problems, package = [], f"langchain-{self.extra}"
        if find_spec(package.replace("-", "_")) is None:
            problems.append(f"{package}, which is not installed ({say_how_to_add(self.extra)})")
        key = os.environ.get(self.key or "", "")
        may_lack_key = not self.needs_key_elsewhere
        if self.key and not key and not (may_lack_key and self.address() is not None):
            other = f", or {self.addresses[-1]} for a server that needs no key"
            problems.append(
                f"{self.key} (set it in .env or in the environment{other if may_lack_key else ''})"
            )
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            problems.append(f"{self.key} without spaces, line breaks or special characters")
        for name in self.addresses:
            value = os.environ.get(name, "")
            if "@" in value or "?" in value:
                problems.append(f"{name} without a user, a password or a query: logs would show it")
            elif not _is_address(value, bare=self.key is None):
                example = self.default_address or "http://127.0.0.1:8080/v1"
                problems.append(f"{name} to be a URL such as {example}, not {value!r}")
        return problems

    def get_arguments(self, model: str, responses: bool | None = None) -> JsonObject:
        """The arguments for ``init_chat_model``, beside the model's name.

        ``responses``: whether the user wants OpenAI's Responses API; None to go by the address.
        """
        arguments = dict(self.arguments)
        if self.extra == "openai":
            arguments |= choose_openai_api(model, self.address(), responses)
        if self.key and not os.environ.get(self.key):
            arguments["api_key"] = "none"  # the client insists on one, the server does not
        return arguments


def _is_address(value: str, *, bare: bool) -> bool:
    """Whether ``value`` names a server; with ``bare``, ``host:port`` is enough."""
    if not value:
        return True
    try:
        parsed = urlsplit(value if "://" in value or not bare else f"http://{value}")
        has_port = parsed.port is None or parsed.port > 0
    except ValueError:
        return False
    return has_port and parsed.scheme in ("http", "https") and bool(parsed.hostname)


_NO_REASONING = re.compile(r"(?:ft:)?(?:gpt-[34]|chatgpt-)|.*-chat\b")


def is_at_openai(address: str | None) -> bool:
    """Whether the address is OpenAI's own, which is also what None means."""
    host = urlsplit(address or "https://api.openai.com").hostname or ""
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def choose_openai_api(model: str, address: str | None, responses: bool | None = None) -> JsonObject:
    """The arguments that choose which of OpenAI's two APIs ``model`` is asked through.

    At OpenAI it is the Responses API: the newest models take no tools through Chat Completions.
    Nothing is stored there, so reasoning comes encrypted and goes back with the history. At any
    other address it is Chat Completions, which every server speaks; LangChain would decide by the
    model's name. ``responses`` decides against the address.
    """
    if not (is_at_openai(address) if responses is None else responses):
        return {"use_responses_api": False}
    options: JsonObject = {"use_responses_api": True, "store": False}
    if not _NO_REASONING.match(model):  # these refuse to include it
        options["include"] = ["reasoning.encrypted_content"]
    return options


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        "anthropic", "ANTHROPIC_API_KEY", ("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL")
    ),
    # The base URL may be that of a local server (vLLM, llama.cpp, Ollama), which needs no key, or
    # of a service such as OpenRouter, which says so itself if the key is missing.
    "openai": Provider(
        "openai",
        "OPENAI_API_KEY",
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        needs_key_elsewhere=False,
    ),
    "ollama": Provider(
        "ollama", addresses=("OLLAMA_HOST",), default_address="http://127.0.0.1:11434"
    ),
    # Its client takes 0 retries for "as many as usual", and counts the first request as one.
    "google_genai": Provider(
        "google-genai", "GOOGLE_API_KEY", ("GOOGLE_GEMINI_BASE_URL",), arguments={"retries": 1}
    ),
}


def get_provider(name: str) -> str:
    """The provider in a name ``provider:name``."""
    return name.partition(":")[0]


def is_local(provider: str) -> bool:
    """Whether the provider is Ollama, or an own server or gateway at ``OPENAI_BASE_URL``."""
    if provider == "openai":
        return not is_at_openai(PROVIDERS[provider].address())
    return provider == "ollama"


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
    parameters: Mapping[str, object],
    *,
    is_trusted: bool = True,
) -> JsonObject:
    """``parameters`` by the names that ``integration``, the client's class, takes.

    ``is_trusted``: the user set them, and not a mode of the workspace. Raises
    ``ConfigurationError`` that names the first one that cannot be set.
    """
    known = {
        name: field.alias or own
        for own, field in integration.model_fields.items()
        if own not in BaseChatModel.model_fields
        for name in (own, field.alias or own)
    }
    allowed = [key for key in sorted(known) if not _refuse(key) and (is_trusted or key in HARMLESS)]
    for parameter in parameters:
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
    return {known[parameter]: value for parameter, value in parameters.items()}


def _refuse(parameter: str) -> str | None:
    """Why nobody may set the parameter; None if that depends on the model."""
    if parameter in HARMLESS:
        return None
    return next((why for names, why in _REFUSED if re.search(names, parameter)), None)
