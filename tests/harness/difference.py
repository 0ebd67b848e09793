"""What of a request is not as it was recorded, line by line."""

import difflib
import json
from collections.abc import Iterator

from graph.replay.cassette import Json, in_order
from graph.replay.player import Asked, Player

MAX_LINES = 120


def difference(player: Player, asked: Asked) -> str:
    """What of ``asked`` is not as in the next interaction, for a person."""
    left = player.unplayed
    total = len(player.recording.interactions)
    if not left:
        return f"one request more than the {total} that were recorded:\n" + _shown(asked.body)
    recorded = player.recording.interactions[left[0]].request
    lines = [f"request {left[0] + 1} of {total} is not as recorded:"]
    for name, old, new in (
        ("method", recorded.method, asked.method),
        ("URL", recorded.uri, asked.uri),
    ):
        if old != new:
            lines.append(f"{name}: recorded {old}, got {new}")
    lines += difflib.unified_diff(
        list(_lines(recorded.body)),
        list(_lines(asked.body)),
        "recorded",
        "got",
        n=3,
        lineterm="",
    )
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"... and {len(lines) - MAX_LINES} lines more"]
    return "\n".join(lines)


def _shown(body: Json) -> str:
    lines = list(_lines(body))
    return "\n".join(lines if len(lines) <= MAX_LINES else [*lines[:MAX_LINES], "..."])


def _lines(value: Json, indent: str = "") -> Iterator[str]:
    """Texts line by line: one changed line of a prompt shows as one line."""
    match value:
        case dict():
            for key in in_order(value):
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
