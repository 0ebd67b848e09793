"""Remembered approvals: a person's "always allow this", for one tool and pattern.

They hold in the thread, the mode and the workspace in which they were given: if one
of these is another, or the mode's definition has changed, they do not.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from graph.harness import Harness
from graph.state import Remembered

ALL = "all"


def remember(harness: Harness, mode_slug: str, tool: str, pattern: str) -> Remembered:
    """A record of an approval that is given now."""
    digest = _digest(harness, mode_slug)
    return Remembered(
        id=sha256(f"{digest}\0{tool}\0{pattern}".encode()).hexdigest()[:12],
        mode=mode_slug,
        tool=tool,
        pattern=pattern,
        digest=digest,
        when=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def patterns(
    harness: Harness, mode_slug: str, remembered: Iterable[Remembered]
) -> Mapping[str, Sequence[str]]:
    """What holds in the mode: patterns by tool."""
    found: dict[str, list[str]] = {}
    for one in remembered:
        if one["mode"] == mode_slug and one["digest"] == _digest(harness, mode_slug):
            found.setdefault(one["tool"], []).append(one["pattern"])
    return found


def after_forgetting(
    harness: Harness, remembered: Sequence[Remembered], ids: Sequence[str]
) -> tuple[list[Remembered], list[str]]:
    """What is left without ``ids``, and without what no longer holds; and what to tell."""
    notices = []
    known = {one["id"] for one in remembered}
    for id in ids:
        if id != ALL and id not in known:
            notices.append(f"no approval {id!r} is remembered in this thread, so none was revoked")
    kept = []
    for one in remembered:
        if ALL in ids or one["id"] in ids:
            continue
        if one["mode"] in harness.catalog and one["digest"] == _digest(harness, one["mode"]):
            kept.append(one)
        else:
            notices.append(
                f"the approval for {one['tool']} {one['pattern']!r} in mode {one['mode']!r} is "
                "revoked: the mode or the workspace is not the same as when it was given"
            )
    return kept, notices


def _digest(harness: Harness, mode_slug: str) -> str:
    place = f"{harness.catalog[mode_slug].digest}\0{harness.toolbox.workspace.root}"
    return sha256(place.encode()).hexdigest()
