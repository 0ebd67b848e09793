"""Remembered approvals: a person's "always allow this", for one tool and a pattern or one call.

Each applies in the thread, mode and workspace in which it was given, until the mode's
definition or the user's rules change.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256

from modeshift.graph.deps import AgentDeps
from modeshift.graph.records.approvals import Remembered

ALL = "all"


def remember(
    deps: AgentDeps, mode_slug: str, tool: str, pattern: str, *, exact: bool
) -> Remembered:
    """A record of an approval that is given now."""
    digest = deps.environment_digest(mode_slug)
    return Remembered(
        id=sha256(f"{digest}\0{tool}\0{exact}\0{pattern}".encode()).hexdigest()[:12],
        mode=mode_slug,
        tool=tool,
        pattern=pattern,
        exact=exact,
        digest=digest,
        when=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def forget(
    deps: AgentDeps, remembered: Sequence[Remembered], ids: Sequence[str]
) -> tuple[list[Remembered], list[str]]:
    """The approvals that remain: without ``ids``, and without invalid ones; and the notices."""
    known = {one["id"] for one in remembered}
    notices = [
        f"no approval {id!r} is remembered in this thread, so none was revoked"
        for id in ids
        if id != ALL and id not in known
    ]
    kept = []
    for one in remembered:
        if ALL in ids or one["id"] in ids:
            continue
        if one["mode"] in deps.catalog and one["digest"] == deps.environment_digest(one["mode"]):
            kept.append(one)
        else:
            notices.append(
                f"the approval for {one['tool']} {one['pattern']!r} in mode {one['mode']!r} is "
                "revoked: the mode, your rules or the workspace have changed"
            )
    return kept, notices
