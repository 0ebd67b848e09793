"""``MODEL=replay:<cassette>``: the recorded model, for demos and for work on a chat UI."""

from contextlib import ExitStack
from pathlib import Path

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from graph.cassette import Recording, loaded
from graph.replay import Asked, Player, in_conversation, playing
from graph.spoken import by_user
from modes.errors import ConfigurationError

_ENDS = ("/chat/completions", "/v1/messages")
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
        recording = _checked(loaded(path), path)
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
    if not recording.interactions:
        raise ConfigurationError(f"the cassette {str(path)!r} is empty")
    return recording


def _client(recording: Recording) -> BaseChatModel:
    uri = recording.interactions[0].uri
    end = next((end for end in _ENDS if uri.endswith(end)), "")
    streamed = recording.header.streamed
    model = init_chat_model(
        recording.header.model,
        api_key="replayed",
        # Said here, or the environment would say it.
        base_url=uri.removesuffix(end),
        # As recorded, whether or not somebody listens.
        streaming=streamed,
        disable_streaming=not streamed,
    )
    assert isinstance(model, BaseChatModel)
    return model


def user_messages(path: Path) -> list[str]:
    """What the user says in the cassette, in order."""
    return _user_messages(loaded(path))


def _user_messages(recording: Recording) -> list[str]:
    said = (text for one in recording.interactions for text in by_user(one.request))
    return list(dict.fromkeys(said))


def _refuse(player: Player, _: Asked) -> str:
    said = ", then ".join(map(repr, _user_messages(player.recording)))
    return (
        "the cassette has no answer here: it replays one conversation. In a new thread say "
        f"{said}, and decide as it was decided then"
    )
