"""Plays a cassette to the provider's client, in place of the network.

``exactly`` is for tests: the same method, URL and body. ``in_conversation`` is for a demo on
the dev server: the same words and calls with the same tools, whatever the prompt has become
and whatever the tools found.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from typing_extensions import override
from vcr.cassette import Cassette
from vcr.patch import PATCHER_NAMES
from vcr.record_mode import RecordMode
from vcr.request import Request

from graph.replay.cassette import Interaction, Json, Recording, decode_body, encode_body
from graph.replay.dialogue import read_dialogue
from graph.replay.scrubbing import scrub

OTHER_CLIENTS = tuple(name for name in PATCHER_NAMES if name != "httpx2")
"""Not the providers': the server has connections of its own, which are let alone."""


@dataclass(frozen=True)
class Asked:
    """What the client wants to send."""

    method: str
    uri: str
    body: Json


Same = Callable[[Interaction, Asked], bool]
Refuse = Callable[["Player", Asked], str]
"""What to tell a client whose request is not in the cassette."""


def exactly(recorded: Interaction, asked: Asked) -> bool:
    """Whether it is the recorded request, but for the order of JSON's keys."""
    one = recorded.request
    is_same_place = (one.method, one.uri) == (asked.method, asked.uri)
    return is_same_place and _canonical(one.body) == _canonical(asked.body)


def _canonical(body: Json) -> str:
    """As text: to Python, ``true``, ``1`` and ``1.0`` are equal."""
    return json.dumps(body, sort_keys=True)


def in_conversation(recorded: Interaction, asked: Asked) -> bool:
    """Whether it is the same point of the same conversation."""
    return read_dialogue(recorded.request.body) == read_dialogue(asked.body)


class Player(Cassette):  # type: ignore[misc]  # vcrpy has no types
    """A cassette that is played; what it does not hold is refused, and never sent.

    Refused as a service would do it: from an exception the clients make a failed connection,
    try again, and lose the text.
    """

    def __init__(
        self,
        recording: Recording,
        same: Same,
        refuse: Refuse,
        *,
        replaced: tuple[tuple[str, str], ...] = (),
        repeats: bool = False,
        path: str,
    ) -> None:
        """``path`` is for messages, ``replaced`` as in ``scrub``.

        With ``repeats`` an answer may be played again.
        """
        self.recording = recording
        self._same = same
        self._refuse = refuse
        self._replaced = replaced
        self._repeats = repeats
        self.refused: list[str] = []
        """Why requests were refused."""
        super().__init__(
            path,
            persister=_Loaded(recording),
            record_mode=RecordMode.NONE,
            skip_patchers=OTHER_CLIENTS,
        )

    @override
    def can_play_response_for(self, request: Request) -> bool:
        return True

    @override
    def play_response(self, request: Request) -> Any:
        asked = self._asked(request)
        index = self._find(asked)
        if index is None:
            self.refused.append(self._refuse(self, asked))
            return _response(422, _NO_RETRY, {"error": {"message": self.refused[-1]}})
        self.play_counts[index] += 1
        return self.data[index][1]

    @property
    def unplayed(self) -> list[int]:
        """The numbers, from 0, of the interactions that nobody has asked for."""
        return [n for n in range(len(self.recording.interactions)) if not self.play_counts[n]]

    def _asked(self, request: Request) -> Asked:
        body = scrub(decode_body(request.body_bytes), self._replaced)
        return Asked(request.method, scrub(request.uri, self._replaced), body)

    def _find(self, asked: Asked) -> int | None:
        """The next one, if it fits; with ``repeats`` the one that fits and was played least."""
        if not self._repeats:
            left = self.unplayed
            is_next = bool(left) and self._same(self.recording.interactions[left[0]], asked)
            return left[0] if is_next else None
        fitting = [
            index for index, one in enumerate(self.recording.interactions) if self._same(one, asked)
        ]
        return min(fitting, key=lambda index: self.play_counts[index], default=None)


class _Loaded:
    """Gives vcrpy what has been read already."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def load_cassette(self, _: str, **__: Any) -> tuple[list[Request], list[dict[str, Any]]]:
        requests = []
        responses = []
        for one in self._recording.interactions:
            sent, got = one.request, one.response
            requests.append(Request(sent.method, sent.uri, encode_body(sent.body), sent.headers))
            responses.append(_response(got.status, got.headers, got.body))
        return requests, responses


_NO_RETRY = {"content-type": "application/json", "x-should-retry": "false"}


def _response(status: int, headers: dict[str, str], body: Json) -> dict[str, Any]:
    """A response in vcrpy's words."""
    phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else ""
    return {
        "status": {"code": status, "message": phrase},
        "headers": {name: [value] for name, value in headers.items()},
        "body": {"string": encode_body(body)},
    }


def playing(
    recording: Recording,
    same: Same,
    refuse: Refuse,
    *,
    path: str,
    replaced: tuple[tuple[str, str], ...] = (),
    repeats: bool = False,
) -> Any:
    """A context in which the providers' clients get the recorded answers; gives the player."""
    return Player.use(
        recording=recording,
        same=same,
        refuse=refuse,
        path=path,
        replaced=replaced,
        repeats=repeats,
    )
