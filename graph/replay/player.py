"""``MODEL=replay:<cassette>``: the recorded model, for demos and for work on a chat UI.

``Player`` answers the provider's client from the cassette, in place of the network.
"""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from typing_extensions import override
from vcr.cassette import Cassette
from vcr.patch import PATCHER_NAMES
from vcr.record_mode import RecordMode
from vcr.request import Request

from graph.replay.cassette import Json, Response, decode_body, load_cassette
from graph.replay.dialogue import Line, is_of_modes, list_user_messages, read_dialogue
from modes.errors import ConfigurationError

FORMATS = {"/responses": "openai", "/chat/completions": "openai", "/v1/messages": "anthropic"}
"""The end of an address, and whose client speaks what is spoken there."""
OTHER_CLIENTS = tuple(name for name in PATCHER_NAMES if name != "httpx2")
"""HTTP clients that no provider uses. The server has connections of its own; leave them alone."""
_playing: dict[Path, BaseChatModel] = {}
_open = ExitStack()
"""Never closed: that would end the replay."""


class ModelCall(NamedTuple):
    """A recorded request to a model, and what came back."""

    address: str
    """Of the service, without the format."""
    format: str
    """One of ``FORMATS``."""
    body: Json
    tools: frozenset[str]
    lines: list[Line]
    response: Response

    @property
    def is_streamed(self) -> bool:
        """Whether a stream was asked for."""
        return bool(self.body.get("stream"))


def load_replay(path: Path) -> BaseChatModel:
    """The client of the recorded provider, which gets the recorded answers from now on.

    Raises ``ConfigurationError`` for a file that is not a cassette, and for a second cassette:
    a process can play only one.
    """
    path = path.resolve()
    if path not in _playing:
        calls = load_calls(path)
        if _playing:
            raise ConfigurationError(
                f"a process plays one cassette, and this one plays {str(next(iter(_playing)))!r}"
            )
        model = make_client(calls[0])
        _open.enter_context(Player.use(path=str(path), calls=calls))
        _playing[path] = model
    return _playing[path]


def load_calls(path: Path) -> list[ModelCall]:
    """The requests to a model, all in one format; raises ``ConfigurationError`` if there is none.

    Other requests are left out, such as one for a list of models.
    """
    calls = []
    for request, response in zip(*load_cassette(path), strict=True):
        address, format = _split(request.uri)
        body = decode_body(request.body_bytes)
        if format and isinstance(body, dict):
            try:
                calls.append(ModelCall(address, format, body, *read_dialogue(body), response))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise ConfigurationError(
                    f"the cassette {str(path)!r} has a malformed request: {error!r}"
                ) from error
    if not calls:
        raise ConfigurationError(
            f"the cassette {str(path)!r} has no request to a model; what can be played ends with "
            f"one of {', '.join(FORMATS)}"
        )
    ((kind, _),) = Counter((one.format, one.is_streamed) for one in calls).most_common(1)
    return [one for one in calls if (one.format, one.is_streamed) == kind]


def _split(uri: str) -> tuple[str, str]:
    """The address of a service and the format that it speaks; the latter is empty for no model."""
    parts = urlsplit(uri)
    path = parts.path.rstrip("/")
    format = next((end for end in FORMATS if path.endswith(end)), "")
    return f"{parts.scheme}://{parts.netloc}{path.removesuffix(format)}", format


def make_client(call: ModelCall) -> BaseChatModel:
    """The client that makes requests such as ``call``."""
    provider = FORMATS[call.format]
    options: dict[str, Any] = {}
    if provider == "openai":
        options["use_responses_api"] = call.format == "/responses"
    chat_model = init_chat_model(
        str(call.body.get("model") or "recorded"),
        model_provider=provider,
        api_key="replayed",
        # Given here, so that the environment does not decide it.
        base_url=call.address,
        # As recorded, whether or not anybody listens.
        streaming=call.is_streamed,
        disable_streaming=not call.is_streamed,
        **options,
    )
    assert isinstance(chat_model, BaseChatModel)
    return chat_model


def refuse(text: str) -> Response:
    """A response, as the service would send one, with ``text`` as its error.

    The clients treat an exception as a failed connection, try again, and lose its text.
    """
    headers = {"content-type": ["application/json"], "x-should-retry": ["false"]}
    body = json.dumps({"error": {"message": text}}, ensure_ascii=False).encode()
    status = {"code": 422, "message": "Unprocessable Entity"}
    return {"status": status, "headers": headers, "body": {"string": body}}


class Player(Cassette):  # type: ignore[misc]  # vcrpy has no types
    """A cassette that is played; a request that it does not hold is refused, and never sent.

    A request fits if it stands at the same point of the conversation: the same words and calls,
    with the same tools. The prompt and the tools' results may have changed since. The tools play
    no part in a recording of another agent, which has no modes.
    """

    def __init__(self, path: str, calls: Sequence[ModelCall]) -> None:
        self.calls = calls
        super().__init__(path, record_mode=RecordMode.NONE, skip_patchers=OTHER_CLIENTS)

    @override
    def _load(self) -> None:
        """It is loaded already."""

    @override
    def can_play_response_for(self, request: Request) -> bool:
        return True

    @override
    def play_response(self, request: Request) -> Response:
        tools, lines = read_dialogue(decode_body(request.body_bytes))
        there = [index for index, one in enumerate(self.calls) if one.lines == lines]
        fitting = [
            index
            for index in there
            if tools == self.calls[index].tools or not is_of_modes(self.calls[index].tools)
        ]
        if fitting:
            index = min(fitting, key=lambda index: self.play_counts[index])
            self.play_counts[index] += 1
            return self.calls[index].response
        if there:
            others = ", ".join(sorted(self.calls[there[0]].tools ^ tools))
            return refuse(
                "the cassette has this point of the conversation in another mode, with other "
                f"tools ({others}); set the mode, or decide, as in the recording"
            )
        said = ", then ".join(map(repr, list_user_messages(one.body for one in self.calls)))
        return refuse(
            "the cassette has no answer here: it replays one conversation. In a new thread say "
            f"{said}, and decide as in the recording"
        )
