"""``Player``: answers a provider's client from a cassette, in place of the network."""

from http import HTTPStatus
from typing import Any

from typing_extensions import override
from vcr.cassette import Cassette
from vcr.patch import PATCHER_NAMES
from vcr.record_mode import RecordMode
from vcr.request import Request

from graph.replay.cassette import Json, Recording, decode_body, encode_body
from graph.replay.dialogue import list_user_messages, read_dialogue

OTHER_CLIENTS = tuple(name for name in PATCHER_NAMES if name != "httpx2")
"""HTTP clients that no provider uses. The server has connections of its own; leave them alone."""
_NO_RETRY = {"content-type": "application/json", "x-should-retry": "false"}


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
