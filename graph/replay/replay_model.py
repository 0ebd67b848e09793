"""``MODEL=replay:<cassette>``: the recorded model, for demos and for work on a chat UI."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from graph.replay.cassette import Recording, load_cassette
from graph.replay.dialogue import read_dialogue
from graph.replay.player import Player
from modes.errors import ConfigurationError

LOCAL_SERVER = "http://127.0.0.1:8080/v1"
"""Where recordings have a server that speaks Chat Completions and is no service of its own."""
ADDRESSES = {
    "https://api.openai.com/v1/responses": "openai",
    "https://api.openai.com/v1/chat/completions": "openai",
    f"{LOCAL_SERVER}/chat/completions": "openai",
    "https://api.anthropic.com/v1/messages": "anthropic",
}
_ENDS = ("/responses", "/chat/completions", "/v1/messages")
_playing: dict[Path, BaseChatModel] = {}
_open = ExitStack()
"""Never closed: that would end the replay."""


def replay_model(path: Path) -> BaseChatModel:
    """The client of the recorded provider, which gets the recorded answers from now on.

    Raises ``ConfigurationError`` for a file that is not a cassette, and for a second cassette:
    a process can play only one.
    """
    path = path.resolve()
    if path not in _playing:
        recording = load_cassette(path)
        _check(recording, path)
        if _playing:
            raise ConfigurationError(
                f"a process plays one cassette, and this one plays {str(next(iter(_playing)))!r}"
            )
        model = _make_client(recording)
        _open.enter_context(Player.use(recording=recording, path=str(path)))
        _playing[path] = model
    return _playing[path]


def _check(recording: Recording, path: Path) -> None:
    """Raise ``ConfigurationError`` unless all is sure to be played, and not sent."""
    if not recording.interactions:
        raise ConfigurationError(f"the cassette {str(path)!r} is empty")
    provider = recording.recorded.model.partition(":")[0]
    for one in recording.interactions:
        uri = one.request.uri
        if ADDRESSES.get(uri) != provider or uri != recording.interactions[0].request.uri:
            raise ConfigurationError(
                f"the cassette {str(path)!r} has a request of {recording.recorded.model!r} to "
                f"{uri!r}; only these can be played, one per cassette: {', '.join(ADDRESSES)}"
            )
        try:
            read_dialogue(one.request.body)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the cassette {str(path)!r} has a malformed request: {error!r}"
            ) from error


def _make_client(recording: Recording) -> BaseChatModel:
    provider, _, model = recording.recorded.model.partition(":")
    streamed = recording.recorded.streamed
    uri = recording.interactions[0].request.uri
    options: dict[str, Any] = {}
    if provider == "openai":
        options["use_responses_api"] = uri.endswith("/responses")
    chat_model = init_chat_model(
        model,
        model_provider=provider,
        api_key="replayed",
        # Given here, so that the environment does not decide it.
        base_url=next(uri.removesuffix(end) for end in _ENDS if uri.endswith(end)),
        # As recorded, whether or not anybody listens.
        streaming=streamed,
        disable_streaming=not streamed,
        **options,
    )
    assert isinstance(chat_model, BaseChatModel)
    return chat_model
