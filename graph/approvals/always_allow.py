"""Remembered approvals: a person's "always allow this", for one tool and the like of a call.

They hold in the thread, the mode and the workspace in which they were given: if one
of these is another, or the mode's definition or the user's rules have changed, they
do not.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from graph.deps import AgentDeps
from graph.state import Remembered
from modes.policy import RememberedApprovals

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


def select_approvals(
    deps: AgentDeps, mode_slug: str, remembered: Iterable[Remembered]
) -> Mapping[str, RememberedApprovals]:
    """What holds in the mode, by tool."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for one in remembered:
        if one["digest"] == deps.environment_digest(mode_slug):
            exact, patterns = found.setdefault(one["tool"], ([], []))
            (exact if one["exact"] else patterns).append(one["pattern"])
    return {tool: RememberedApprovals(*lists) for tool, lists in found.items()}


def forget(
    deps: AgentDeps, remembered: Sequence[Remembered], ids: Sequence[str]
) -> tuple[list[Remembered], list[str]]:
    """What is left without ``ids``, and without what no longer holds; and what to tell."""
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
                "revoked: the mode, your rules or the workspace are not as they were"
            )
    return kept, notices
