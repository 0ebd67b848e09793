"""``StrictReplay``: plays a cassette to exactly the requests that were recorded, in their order."""

import json
from typing import Any

from vcr.cassette import Cassette
from vcr.matchers import get_matchers_results
from vcr.request import Request

from tests.harness.cassette import Response


class StrictReplay:
    """Answers in the place of ``cassette``; what is equal is said by its ``match_on``.

    vcrpy plays any interaction that matches, and tells the client of a difference by an exception,
    in which the client sees a connection that failed.
    """

    def __init__(self, cassette: Cassette) -> None:
        self.cassette = cassette
        self.refused: list[str] = []
        """Why requests were refused."""
        cassette.can_play_response_for = self._can_play
        cassette.play_response = self.play

    @property
    def unplayed(self) -> list[int]:
        """The indexes of the interactions that were not asked for."""
        return [n for n in range(len(self.cassette)) if not self.cassette.play_counts[n]]

    def play(self, request: Request) -> Response:
        """The next response, or a refusal that says what differs."""
        if found := self._find_difference(self.cassette.filter_request(request)):
            self.refused.append(
                f"{self.cassette.path}: {found}\n"
                "If you meant this change, record again: make record (docs/cassettes.md)"
            )
            return refuse(self.refused[-1])
        index = self.unplayed[0]
        self.cassette.play_counts[index] += 1
        response: Response = self.cassette.responses[index]
        return response

    def _can_play(self, request: Request) -> bool:
        return self.cassette.filter_request(request) is not None

    def _find_difference(self, request: Request) -> str:
        total = len(self.cassette)
        if not self.unplayed:
            body = (request.body_bytes or b"").decode(errors="replace")
            return f"one request more than the {total} that were recorded: {body[:2000]}"
        number = self.unplayed[0]
        matchers: Any = self.cassette._match_on  # there is no other way to them
        _, failed = get_matchers_results(request, self.cassette.requests[number], matchers)
        lines = [f"request {number + 1} of {total} is not as recorded:"]
        for name, why in failed:
            lines.append(f"{name}: {why}")
        return "\n".join(lines) if failed else ""


def refuse(text: str) -> Response:
    """A response, as the service would send one, with ``text`` as its error.

    The clients treat an exception as a failed connection, try again, and lose its text.
    """
    headers = {"content-type": ["application/json"], "x-should-retry": ["false"]}
    body = json.dumps({"error": {"message": text}}, ensure_ascii=False).encode()
    status = {"code": 422, "message": "Unprocessable Entity"}
    return {"status": status, "headers": headers, "body": {"string": body}}
