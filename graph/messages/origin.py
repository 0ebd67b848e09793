"""Whose form an answer is in: they take it back as it came, and nobody else does."""

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

RESPONSES = "openai"
"""OpenAI's Responses API, with a model that reasons."""
RESPONSES_UNREASONED = "openai-unreasoned"
"""The same with one that does not, which refuses what another has reasoned."""
CHAT_COMPLETIONS = "openai-chat"
"""Whatever server speaks it."""


def origin_of(message: AIMessage) -> str | None:
    """Of an answer; a provider's name but for OpenAI's, None for nobody's."""
    found = message.response_metadata
    provider: str | None = found.get("model_provider")
    if provider == "openai" and found.get("object") != "response":
        return CHAT_COMPLETIONS
    return provider


def origin_of_answers(model: BaseChatModel, provider: str) -> str:
    """Of what the model of ``provider`` will say, and takes back."""
    if provider != "openai":
        return provider
    if not getattr(model, "use_responses_api", False):
        return CHAT_COMPLETIONS
    return RESPONSES if getattr(model, "include", None) else RESPONSES_UNREASONED
