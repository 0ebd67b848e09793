"""``load_model``: a chat model from its name; ``Models``: those of all modes."""

from difflib import get_close_matches

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from graph.models.anthropic import CacheTTL, Service
from graph.models.offline import OfflineModel
from graph.models.providers import PROVIDERS, get_limits
from graph.models.usage import find_window
from graph.settings import ROOT
from modes.errors import ConfigurationError
from modes.plain_text import to_one_line


class Models:
    """The chat models by name, each loaded once."""

    def __init__(
        self,
        default: str | BaseChatModel,
        context_window: int | None = None,
        cache_ttl: CacheTTL = "5m",
    ) -> None:
        """``default`` is for modes that name no model; raises ``ConfigurationError``.

        ``context_window`` holds for all models; without it each model's is looked up.
        """
        self._context_window = context_window
        self._cache_ttl = cache_ttl
        self.default = default if isinstance(default, str) else default._llm_type
        model = load_model(default) if isinstance(default, str) else default
        self._models: dict[str, BaseChatModel] = {self.default: model}
        self._services: dict[str, Service] = {}

    def problem(self, name: str | None) -> str | None:
        """Why the model cannot be loaded; None if it can."""
        try:
            self[name]
        except ConfigurationError as error:
            return str(error)
        return None

    def service(self, name: str | None) -> Service:
        """What is known of the service behind the model; always the same object."""
        name = name or self.default
        return self._services.setdefault(name, Service(name, self._cache_ttl))

    def window(self, name: str | None) -> int | None:
        """How many tokens the model's window holds; None if nobody says."""
        return self._context_window or find_window(self[name])

    def __getitem__(self, name: str | None) -> BaseChatModel:
        """The model of this name, or the default one; raises ``ConfigurationError``."""
        name = name or self.default
        if name not in self._models:
            self._models[name] = load_model(name)
        return self._models[name]


def load_model(name: str) -> BaseChatModel:
    """The model called ``offline``, ``replay:cassette`` or ``provider:name``.

    Raises ``ConfigurationError`` for any other name, for a provider that is
    unknown or not installed, and for a key that is missing.
    """
    if name == "offline":
        return OfflineModel()
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise ConfigurationError(
            f"the model {name!r} is neither 'offline' nor 'replay:cassette' nor 'provider:name', "
            "such as 'anthropic:claude-sonnet-5-5' or 'openai:gpt-5.6'"
        )
    if provider == "replay":
        return _load_replay(name, model)
    known = PROVIDERS.get(provider)
    if known is not None and (problems := known.list_problems()):
        raise ConfigurationError(f"the model {name!r} needs {'; and '.join(problems)}")
    try:
        arguments = known.get_arguments(model) if known is not None else {}
        chat_model = init_chat_model(model, model_provider=provider, **arguments)
        # Only now it is known which class it is, and how that calls its limits.
        if limits := get_limits(type(chat_model)):
            chat_model = init_chat_model(model, model_provider=provider, **arguments, **limits)
    except ImportError as error:
        raise ConfigurationError(
            f"the model {name!r} needs a package that is not installed; add it to pyproject.toml "
            f"as an extra, and run `make lock`: {to_one_line(str(error)).partition('. ')[0]}"
        ) from error
    except Exception as error:  # each integration raises its own
        like = get_close_matches(provider, PROVIDERS, 1)
        hint = f" (did you mean {like[0]!r}?)" if like and like[0] != provider else ""
        problem = to_one_line(str(error))
        raise ConfigurationError(f"the model {name!r} cannot be loaded{hint}: {problem}") from error
    assert isinstance(chat_model, BaseChatModel)
    return chat_model


def _load_replay(name: str, path: str) -> BaseChatModel:
    try:
        from graph.replay.player import load_replay  # noqa: PLC0415  # vcrpy is an extra
    except ImportError as error:
        raise ConfigurationError(
            f"the model {name!r} needs the extra 'replay' of pyproject.toml, which is not "
            "installed (remove .venv and start again, or: .venv/bin/uv pip install vcrpy)"
        ) from error
    return load_replay(ROOT / path)
