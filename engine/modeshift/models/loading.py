"""``Models``: chat models from their names, and what is known of the servers behind them."""

from collections.abc import Mapping
from difflib import get_close_matches
from json import dumps
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from modeshift.models.offline import OfflineModel
from modeshift.models.providers import (
    PROVIDERS,
    check_parameters,
    get_limits,
    get_provider,
    is_local,
)
from modeshift.models.service import (
    CacheTTL,
    ModelServer,
    ModelService,
    ask_server,
    choose_tools_way,
)
from modeshift.models.usage import find_listed_window
from modeshift.modes.errors import ConfigurationError, MissingKeyError
from modeshift.modes.mode import Level, Mode
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line

PARTS_OF_WINDOW = 4
"""Into how many parts the context window is divided: an answer may take one."""
_CHAT_COMPLETIONS = "BaseChatOpenAI"
"""LangChain's base class of the integrations whose servers speak Chat Completions."""


class Models:
    """The chat models of modes, by name and parameters; each loaded once."""

    def __init__(
        self,
        default: str | BaseChatModel,
        context_window: int | None = None,
        cache_ttl: CacheTTL = "5m",
        parameters: Mapping[str, Any] | None = None,
        mode_changes: str = "auto",
        *,
        asks_servers: bool = False,
    ) -> None:
        """``default`` is for modes that name no model; raises ``ConfigurationError``.

        ``context_window`` holds for all models; without it each model's is looked up.
        ``parameters`` are the user's, for all models of the default one's provider. The others
        are the settings of these names. ``asks_servers``: whether ``learn`` asks a server.
        """
        self._asks_servers = asks_servers
        self._context_window = context_window
        self._cache_ttl = cache_ttl
        self._mode_changes = mode_changes
        # Private by its name, and yet the one that LangChain has each chat model define.
        self.default = default if isinstance(default, str) else default._llm_type
        self._parameters = dict(parameters or {})
        model = load_model(default, self._parameters) if isinstance(default, str) else default
        self._models = {(self.default, "{}", True): model}
        self._services: dict[str, ModelService] = {}

    def problem(self, mode: Mode) -> str | None:
        """Why the mode's model cannot be used; None where no reason is known yet."""
        try:
            server = self.service(mode).server
        except ConfigurationError as error:
            return str(error)
        if server is None or server.has_tools is not False:
            return None
        return (
            f"the model {mode.model or self.default!r} is shown no tools: its server's chat "
            "template has no place for them; start the server with another template "
            "(llama.cpp: --chat-template-file), or set MODEL to another model"
        )

    def service(self, mode: Mode) -> ModelService:
        """What is known of the service behind the mode's model; the same object for each name.

        Raises ``ConfigurationError``.
        """
        model, name, setting = self[mode], mode.model or self.default, self._mode_changes
        if name not in self._services:
            way = choose_tools_way(model, setting, is_local=is_local(get_provider(name)))
            service = ModelService(name, self._cache_ttl, way, is_set=setting != "auto")
            self._services[name] = service
        return self._services[name]

    def learn(self, mode: Mode) -> None:
        """Ask the server of the mode's model what it takes, unless it has said so; blocks.

        Raises ``ConfigurationError``.
        """
        service = self.service(mode)
        if service.server is None:
            name = mode.model or self.default
            server = ask_server(name) if self._asks_servers else ModelServer()
            service.server = server
            is_known = server is not None and server.window is not None
            service.max_tokens = (self.window(mode) or 0) // PARTS_OF_WINDOW if is_known else None

    def window(self, mode: Mode) -> int | None:
        """The context window of the mode's model, in tokens; None if that is not known."""
        model, server = self[mode], self.service(mode).server
        known = self._context_window or getattr(model, "num_ctx", None)
        known = known or (server.window if server is not None else None)
        known = known or (model.profile or {}).get("max_input_tokens")  # LangChain's table
        return known or find_listed_window(mode.model or self.default)

    def __getitem__(self, mode: Mode) -> BaseChatModel:
        """The mode's model with its parameters, before which the user's are set.

        Raises ``ConfigurationError``.
        """
        name = mode.model or self.default
        parameters = mode.model_parameters
        is_trusted = not parameters or mode.level is not Level.PROJECT
        key = (
            name,
            dumps(parameters, sort_keys=True, default=str) if parameters else "{}",
            is_trusted,
        )
        if key not in self._models:
            shared = self._parameters if get_provider(name) == get_provider(self.default) else {}
            self._models[key] = load_model(name, shared, parameters, is_trusted=is_trusted)
        return self._models[key]


def load_model(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    of_mode: Mapping[str, Any] | None = None,
    *,
    is_trusted: bool = True,
) -> BaseChatModel:
    """The model called ``offline`` or ``provider:name``.

    ``of_mode`` are parameters that win over the others; ``is_trusted``: the user set them, and
    not the workspace. Raises ``ConfigurationError`` for any other name, for a provider that is
    unknown or not installed, for a key that is missing, and for parameters it does not take.
    """
    provider, _, model = name.partition(":")
    merged = {**(parameters or {}), **(of_mode or {})}
    if merged and provider == "offline":
        raise ConfigurationError(f"the model {name!r} takes no parameters (got {sorted(merged)})")
    if name == "offline":
        return OfflineModel()
    if not provider or not model:
        raise ConfigurationError(
            f"the model {name!r} is neither 'offline' nor 'provider:name', "
            "such as 'anthropic:claude-sonnet-5-5' or 'openai:gpt-5.6'"
        )
    known = PROVIDERS.get(provider)
    if known is not None and (problems := known.list_problems()):
        raise MissingKeyError(f"the model {name!r} needs {'; and '.join(problems)}")
    try:
        uses_responses = merged.get("use_responses_api")
        arguments = known.get_arguments(model, uses_responses) if known is not None else {}
        # Only now it is known which class this is, and what its limits are called.
        integration = type(init_chat_model(model, model_provider=provider, **arguments))
        checked = check_parameters(name, integration, parameters or {})
        checked |= check_parameters(name, integration, of_mode or {}, is_trusted=is_trusted)
        more = {**get_limits(integration), **arguments, **checked}
        return _build(integration, provider, model, more)
    except ConfigurationError:
        raise
    except ImportError as error:
        raise ConfigurationError(
            f"the model {name!r} needs a package that is not installed; add it to the dependencies "
            f"in pyproject.toml, and run `make lock`: {to_one_line(str(error)).partition('. ')[0]}"
        ) from error
    except Exception as error:  # each integration raises its own
        like = get_close_matches(provider, PROVIDERS, 1)
        hint = f" (did you mean {like[0]!r}?)" if like and like[0] != provider else ""
        problem = to_one_line(str(error))
        raise ConfigurationError(f"the model {name!r} cannot be loaded{hint}: {problem}") from error


def _build(
    integration: type[BaseChatModel], provider: str, model: str, arguments: JsonObject
) -> BaseChatModel:
    is_openais = _CHAT_COMPLETIONS in {parent.__qualname__ for parent in integration.__mro__}
    if is_openais and provider != "langsmith":  # its address is not in the arguments
        from modeshift.models import openai_chat  # noqa: PLC0415  # langchain-openai is an extra

        return openai_chat.build_extended(integration, model=model, **arguments)  # type: ignore[arg-type]  # it is
    built = init_chat_model(model, model_provider=provider, **arguments)
    assert isinstance(built, BaseChatModel)
    return built
