"""``BoundModel``: what a mode node calls."""

from dataclasses import dataclass

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.runnables import Runnable

from graph.models.optional_fields import Service


@dataclass(frozen=True)
class BoundModel:
    """A mode's system prompt, and the model with the mode's tools bound."""

    mode: str
    """Its slug."""
    prompt: SystemMessage
    model: Runnable[LanguageModelInput, AIMessage]
    """With the mode's tools bound."""
    name: str
    """Of the model, as the user wrote it."""
    origin: str
    """Whose answers it takes back as they came."""
    service: Service
