"""``MODEL=replay:<cassette>``: the recorded model, for demos and for work on a chat UI.

``Player`` answers the provider's client from the cassette, in place of the network.
"""

from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from typing_extensions import override
from vcr.cassette import Cassette
from vcr.patch import PATCHER_NAMES
from vcr.record_mode import RecordMode
from vcr.request import Request

from graph.replay.cassette import Json, Recording, decode_body, encode_body, load_cassette
from graph.replay.dialogue import list_user_messages, read_dialogue
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
OTHER_CLIENTS = tuple(name for name in PATCHER_NAMES if name != "httpx2")
"""HTTP clients that no provider uses. The server has connections of its own; leave them alone."""
_NO_RETRY = {"content-type": "application/json", "x-should-retry": "false"}


def load_replay(path: Path) -> BaseChatModel:
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


class Player(Cassette):  # type: ignore[misc]  # vcrpy has no types
    """A cassette that is played; a request that it does not hold is refused, and never sent.

    A request fits if it stands at the same point of the conversation: the same words and calls,
    with the same tools. The prompt and the tools' results may have changed since.

    A refusal is an HTTP response, as the service would send: the clients treat an exception as
    a failed connection, try again, and lose its text.
    """

    def __init__(self, recording: Recording, path: str) -> None:
        self.recording = recording
        super().__init__(
            path,
            persister=_Loaded(recording),
            record_mode=RecordMode.NONE,
            skip_patchers=OTHER_CLIENTS,
        )

    def find(self, request: Request) -> int | None:
        """The index of the interaction to play: of those that fit, the one played least."""
        asked = read_dialogue(decode_body(request.body_bytes))
        fitting = [
            index
            for index, one in enumerate(self.recording.interactions)
            if read_dialogue(one.request.body) == asked
        ]
        return min(fitting, key=lambda index: self.play_counts[index], default=None)

    def explain(self, request: Request) -> str:
        """What to tell a client whose request is not in the cassette."""
        tools, lines = read_dialogue(decode_body(request.body_bytes))
        bodies = [one.request.body for one in self.recording.interactions]
        for recorded_tools, recorded_lines in map(read_dialogue, bodies):
            if recorded_lines == lines:
                return (
                    "the cassette has this point of the conversation in another mode, with other "
                    f"tools ({', '.join(sorted(recorded_tools ^ tools))}); set the mode, or "
                    "decide, as in the recording"
                )
        said = ", then ".join(map(repr, list_user_messages(bodies)))
        return (
            "the cassette has no answer here: it replays one conversation. In a new thread say "
            f"{said}, and decide as in the recording"
        )

    @override
    def can_play_response_for(self, request: Request) -> bool:
        return True

    @override
    def play_response(self, request: Request) -> Any:
        index = self.find(request)
        if index is None:
            return _to_vcr(422, _NO_RETRY, {"error": {"message": self.explain(request)}})
        self.play_counts[index] += 1
        return self.data[index][1]


class _Loaded:
    """Hands vcrpy a recording that has been read already."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def load_cassette(self, _: str, **__: Any) -> tuple[list[Request], list[dict[str, Any]]]:
        requests = []
        responses = []
        for one in self._recording.interactions:
            sent, got = one.request, one.response
            requests.append(Request(sent.method, sent.uri, encode_body(sent.body), sent.headers))
            responses.append(_to_vcr(got.status, got.headers, got.body))
        return requests, responses


def _to_vcr(status: int, headers: dict[str, str], body: Json) -> dict[str, Any]:
    """A response in the form that vcrpy wants."""
    phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else ""
    return {
        "status": {"code": status, "message": phrase},
        "headers": {name: [value] for name, value in headers.items()},
        "body": {"string": encode_body(body)},
    }
