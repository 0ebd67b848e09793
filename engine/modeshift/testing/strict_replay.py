"""``StrictReplay``: plays a cassette to exactly the requests that were recorded, in their order."""

import difflib
import json
from typing import Any

import yaml
from typing_extensions import override
from vcr.cassette import Cassette
from vcr.matchers import get_matchers_results
from vcr.request import Request

from modeshift.modes.plain_data import JsonObject

Json = Any
Response = JsonObject
"""A response as vcrpy holds it: ``status``, ``headers``, ``body`` with its ``string`` in bytes."""
MAX_LINES = 120


class StrictReplay:
    """Answers in place of ``cassette``, whose ``match_on`` says which requests are equal.

    vcrpy plays any interaction that matches, and reports a difference as an exception, which the
    client takes for a failed connection.
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
        if difference := self._find_difference(self.cassette.filter_request(request)):
            self.refused.append(
                f"{self.cassette.path}: {difference}\n"
                "If you meant this change, record again: make record (docs/own/cassettes.md)"
            )
            return build_refusal(self.refused[-1])
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


def build_refusal(text: str) -> Response:
    """A response, as the service would send one, with ``text`` as its error.

    The clients treat an exception as a failed connection, try again, and lose its text.
    """
    headers = {"content-type": ["application/json"], "x-should-retry": ["false"]}
    body = json.dumps({"error": {"message": text}}, ensure_ascii=False).encode()
    status = {"code": 422, "message": "Unprocessable Entity"}
    return {"status": status, "headers": headers, "body": {"string": body}}


def decode_body(body: Json) -> Json:
    """The JSON of a request's or response's body, else its text."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body or ""
    try:
        return json.loads(text)
    except ValueError:
        return text


def body(sent: Request, recorded: Request) -> None:
    """JSON must be equal, but for the order of keys; the difference is an ``AssertionError``.

    To vcrpy's own matcher ``true`` and ``1`` are equal, and a prompt is one long line.
    """
    bodies = [decode_body(request.body_bytes) for request in (recorded, sent)]
    first, second = (json.dumps(content, sort_keys=True) for content in bodies)
    if first != second:
        old, new = map(_list_lines, bodies)
        lines = list(difflib.unified_diff(old, new, "recorded", "sent", lineterm=""))
        if len(lines) > MAX_LINES:
            lines[MAX_LINES:] = [f"... and {len(lines) - MAX_LINES} more lines"]
        raise AssertionError("\n".join(lines))


def _list_lines(content: Json) -> list[str]:
    text: str = yaml.dump(content, Dumper=Dumper, allow_unicode=True, width=1000)
    return text.splitlines()


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BASE: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Dumper(_BASE):  # type: ignore[misc]  # whichever is available
    """Writes texts of several lines as they are, and repeats what is equal in full."""

    yaml_representers = {**_BASE.yaml_representers, str: _represent_text}  # noqa: RUF012

    @override
    def ignore_aliases(self, data: object) -> bool:  # PyYAML's signature
        """Write no alias for what is repeated."""
        return True
