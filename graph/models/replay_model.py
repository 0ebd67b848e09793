"""``MODEL=replay:<cassette>``: the recorded model, for demos and for work on a chat UI."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from graph.models.providers import PROVIDERS
from graph.replay.cassette import Recording, load_cassette
from graph.replay.dialogue import by_user, read_dialogue
from graph.replay.player import Asked, Player, in_conversation, playing
from modes.errors import ConfigurationError

ADDRESSES = {
    "https://api.openai.com/v1/responses": "openai",
    "https://api.openai.com/v1/chat/completions": "openai",
    f"{PROVIDERS['openai'].example}/chat/completions": "openai",
    "https://api.anthropic.com/v1/messages": "anthropic",
}
_ENDS = ("/responses", "/chat/completions", "/v1/messages")
_playing: dict[Path, BaseChatModel] = {}
_open = ExitStack()
"""Never closed: what it holds would end with it."""


def replay_model(path: Path) -> BaseChatModel:
    """The client of the recorded provider, which gets the recorded answers from now on.

    Raises ``ConfigurationError`` for what is no cassette, and for a second one: a process
    plays one.
    """
    path = path.resolve()
    if path not in _playing:
        recording = _checked(load_cassette(path), path)
        if _playing:
            raise ConfigurationError(
                f"a process plays one cassette, and it plays {str(next(iter(_playing)))!r} already"
            )
        model = _client(recording)
        tape = playing(recording, in_conversation, _refuse, path=str(path), repeats=True)
        _open.enter_context(tape)
        _playing[path] = model
    return _playing[path]


def _checked(recording: Recording, path: Path) -> Recording:
    """Only what is sure to be played: another client would go to the network."""
    provider = recording.recorded.model.partition(":")[0]
    for one in recording.interactions:
        uri = one.request.uri
        if ADDRESSES.get(uri) != provider or uri != recording.interactions[0].request.uri:
            raise ConfigurationError(
                f"the cassette {str(path)!r} has a request of {recording.recorded.model!r} to "
                f"{uri!r}; played are, one in a cassette: {', '.join(ADDRESSES)}"
            )
        try:
            read_dialogue(one.request.body)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the cassette {str(path)!r} has a request that is none: {error!r}"
            ) from error
    if not recording.interactions:
        raise ConfigurationError(f"the cassette {str(path)!r} is empty")
    return recording


def _client(recording: Recording) -> BaseChatModel:
    provider, _, model = recording.recorded.model.partition(":")
    streamed = recording.recorded.streamed
    uri = recording.interactions[0].request.uri
    more: dict[str, Any] = {}
    if provider == "openai":
        more["use_responses_api"] = uri.endswith(_ENDS[0])
    chat_model = init_chat_model(
        model,
        model_provider=provider,
        api_key="replayed",
        # Said here, or the environment would say it.
        base_url=next(uri.removesuffix(end) for end in _ENDS if uri.endswith(end)),
        # As recorded, whether or not somebody listens.
        streaming=streamed,
        disable_streaming=not streamed,
        **more,
    )
    assert isinstance(chat_model, BaseChatModel)
    return chat_model


def user_messages(recording: Recording) -> list[str]:
    """What the user says in the cassette, in order."""
    said = (text for one in recording.interactions for text in by_user(one.request.body))
    return list(dict.fromkeys(said))


def _refuse(player: Player, asked: Asked) -> str:
    tools, words = read_dialogue(asked.body)
    for one in player.recording.interactions:
        recorded_tools, recorded_words = read_dialogue(one.request.body)
        if recorded_words == words:
            return (
                "the cassette has this point of the conversation in another mode, with other "
                f"tools ({', '.join(sorted(recorded_tools ^ tools))}); set the mode, or decide, "
                "as it was done then"
            )
    said = ", then ".join(map(repr, user_messages(player.recording)))
    return (
        "the cassette has no answer here: it replays one conversation. In a new thread say "
        f"{said}, and decide as it was decided then"
    )
