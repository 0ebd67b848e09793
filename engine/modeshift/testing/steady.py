"""``Steady``: a server's answers, without what differs in each recording."""

import json
import re
from hashlib import sha256
from pathlib import PureWindowsPath
from string import ascii_letters, digits

import httpcore2

from modeshift.testing.cassette_format import Json, decode_body


class Ids:
    """Ids that look like a service's, and are the same in every recording."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str, length: int) -> str:
        """The prefix, and so many letters and digits."""
        self._count += 1
        number = int.from_bytes(sha256(f"{prefix}{self._count}".encode()).digest())
        letters = digits + ascii_letters
        text = ""
        while len(text) < length:
            number, index = divmod(number, len(letters))
            text += letters[index]
        return prefix + text


class Steady:
    """Takes times out, and gives ids that are the same each time; one for each conversation.

    The client gets the changed answer, too, because it sends the ids of calls back.
    """

    def __init__(self) -> None:
        self._ids = Ids()
        self._given: dict[str, str] = {}

    async def make_response(self, response: httpcore2.Response) -> httpcore2.Response:
        """The answer of a server, read whole."""
        content = self.make(await response.aread())
        await response.aclose()
        framing = (b"content-length", b"transfer-encoding")
        headers = [pair for pair in response.headers if pair[0].lower() not in framing]
        return httpcore2.Response(response.status, headers=headers, content=content)

    def make(self, content: bytes) -> bytes:
        """The body of an answer, JSON or a stream of it."""
        lines = content.split(b"\n")
        return self._make_json(content) or b"\n".join(map(self._make_event, lines))

    def _make_event(self, line: bytes) -> bytes:
        name, is_data, data = line.partition(b"data: ")
        made = self._make_json(data) if is_data else None
        return name + is_data + made if made else line

    def _make_json(self, content: bytes) -> bytes | None:
        value = decode_body(content)
        if not isinstance(value, dict):
            return None
        return json.dumps(self._replace(value), ensure_ascii=False).encode()

    def _replace(self, value: object, name: str = "") -> Json:
        match name, value:
            case _, dict():
                kept = [(key, part) for key, part in value.items() if key != "timings"]
                return {key: self._replace(part, key) for key, part in kept}
            case _, list():
                return [self._replace(part) for part in value]
            case "created", int():
                return 0
            case "id", str() if value:
                return self._number(value)
            case "model", str() if (path := PureWindowsPath(value)).root:
                return path.name
        return value

    def _number(self, id: str) -> str:
        """A numbered id of the same form: some templates count its letters."""
        words = re.match(r"(?:[a-z]+[-_])*", id)
        prefix = words[0] if words else ""
        if id not in self._given:
            self._given[id] = self._ids.new(prefix, len(id) - len(prefix))
        return self._given[id]
