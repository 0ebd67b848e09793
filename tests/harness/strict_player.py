"""``StrictPlayer``: plays a cassette to exactly the requests that were recorded, in their order."""

import difflib
import json
from collections.abc import Iterator
from typing import Any

from typing_extensions import override
from vcr.request import Request

from graph.replay.cassette import Json, Recording, decode_body
from graph.replay.player import Player
from tests.harness.cassette_writer import sort_keys
from tests.harness.scrubbing import Replaced, scrub

MAX_LINES = 120


class StrictPlayer(Player):
    """The same method, URL and body, but for the order of JSON's keys."""

    def __init__(self, recording: Recording, path: str, replaced: Replaced = ()) -> None:
        self._replaced = replaced
        self.refused: list[str] = []
        """Why requests were refused."""
        super().__init__(recording, path)

    @property
    def unplayed(self) -> list[int]:
        """The indexes of the interactions that were not asked for."""
        return [n for n in range(len(self.recording.interactions)) if not self.play_counts[n]]

    @override
    def find(self, request: Request) -> int | None:
        if not self.unplayed:
            return None
        recorded = self.recording.interactions[self.unplayed[0]].request
        is_same_place = (recorded.method, recorded.uri) == (request.method, self._uri(request))
        # As text: to Python, `true`, `1` and `1.0` are equal.
        is_same_body = _canonical(recorded.body) == _canonical(self._body(request))
        return self.unplayed[0] if is_same_place and is_same_body else None

    @override
    def explain(self, request: Request) -> str:
        self.refused.append(
            f"{self._path}: {self._difference(request)}\n"
            "If you meant this change, record again: make record (docs/cassettes.md)"
        )
        return self.refused[-1]

    def _uri(self, request: Request) -> Any:
        return scrub(request.uri, self._replaced)

    def _body(self, request: Request) -> Json:
        return scrub(decode_body(request.body_bytes), self._replaced)

    def _difference(self, request: Request) -> str:
        total = len(self.recording.interactions)
        body = self._body(request)
        if not self.unplayed:
            lines = [f"one request more than the {total} that were recorded:", *_lines(body)]
        else:
            number = self.unplayed[0]
            recorded = self.recording.interactions[number].request
            lines = [f"request {number + 1} of {total} is not as recorded:"]
            for name, old, new in (
                ("method", recorded.method, request.method),
                ("URL", recorded.uri, self._uri(request)),
            ):
                if old != new:
                    lines.append(f"{name}: recorded {old}, got {new}")
            old_lines, new_lines = list(_lines(recorded.body)), list(_lines(body))
            lines += difflib.unified_diff(old_lines, new_lines, "recorded", "got", lineterm="")
        if len(lines) > MAX_LINES:
            lines[MAX_LINES:] = [f"... and {len(lines) - MAX_LINES} more lines"]
        return "\n".join(lines)


def _canonical(body: Json) -> str:
    return json.dumps(body, sort_keys=True)


def _lines(value: Json, indent: str = "") -> Iterator[str]:
    """Texts line by line, so that one changed line of a prompt shows as one line."""
    match value:
        case dict():
            for key in sort_keys(value):
                yield f"{indent}{key}:"
                yield from _lines(value[key], indent + "  ")
        case list():
            for one in value:
                yield f"{indent}-"
                yield from _lines(one, indent + "  ")
        case str() if "\n" in value:
            for line in value.split("\n"):
                yield f"{indent}| {line}"
        case _:
            yield f"{indent}{json.dumps(value, ensure_ascii=False)}"
