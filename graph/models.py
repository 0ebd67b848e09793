"""``load_model``: a chat model from its name."""

import os

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from graph.offline import OfflineModel
from modes.errors import ConfigurationError
from modes.plain_text import plain

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""The variable with the key, for the providers that the clone installs and that need one."""


class Models:
    """The chat models of the modes, by name; each made once."""

    def __init__(self, default: str | BaseChatModel) -> None:
        """``default`` is for a mode that names none; raises ``ConfigurationError``."""
        self.default = default if isinstance(default, str) else default._llm_type
        model = load_model(default) if isinstance(default, str) else default
        self._models: dict[str, BaseChatModel] = {self.default: model}

    def problem(self, name: str | None) -> str | None:
        """Why the model cannot be had; None where it can."""
        try:
            self[name]
        except ConfigurationError as error:
            return str(error)
        return None

    def __getitem__(self, name: str | None) -> BaseChatModel:
        """The model of this name, or the default one; raises ``ConfigurationError``."""
        name = name or self.default
        if name not in self._models:
            self._models[name] = load_model(name)
        return self._models[name]


def load_model(name: str) -> BaseChatModel:
    """The model called ``offline`` or ``provider:name``.

    Raises ``ConfigurationError`` for any other name, for a provider that is
    unknown or not installed, and for a key that is missing.
    """
    if name == "offline":
        return OfflineModel()
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise ConfigurationError(
            f"the model {name!r} is neither 'offline' nor 'provider:name', "
            "such as 'anthropic:claude-sonnet-4-5' or 'openai:gpt-5'"
        )
    if (key := KEYS.get(provider)) and not os.environ.get(key):
        raise ConfigurationError(
            f"the model {name!r} needs {key}: set it in .env or in the environment, "
            "or name another model"
        )
    try:
        chat_model = init_chat_model(model, model_provider=provider)
    except ImportError as error:
        raise ConfigurationError(
            f"the model {name!r} needs a package that is not installed: {plain(str(error))}"
        ) from error
    except Exception as error:  # each provider's client has its own
        problem = plain(str(error))
        raise ConfigurationError(f"the model {name!r} cannot be loaded: {problem}") from error
    assert isinstance(chat_model, BaseChatModel)
    return chat_model
