"""What is known of what has happened in a thread: the facts that conditions of edges name."""

import asyncio
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from modeshift.modes.errors import SlowPatternError
from modeshift.modes.facts import Done, Scope
from modeshift.modes.plain_text import to_one_line
from modeshift.threads.deps import AgentDeps
from modeshift.threads.state import Facts, Parent, State

log = logging.getLogger("modeshift")
MAX_TEST_FILES = 5000
MAX_TEST_BYTES = 50_000_000
NO_TEST_FILES = (".pytest_cache",)
"""Folders that running tests writes; what is in them does not count. Byte code does: it may be of
another source than it says, and commands write none."""
CHANGED = "tests_changed"
PLAN = "plan_written"
NO_FILES = "no files"
"""The digest where the owner names none."""
UNKNOWN = "?"
"""Before a fact's name: its function raised, and no call since has decided what it is."""
_logged = set[str]()


def follow(deps: AgentDeps, facts: Facts, done: Done) -> Facts:
    """The facts after a call."""
    true: dict[Scope, list[str]] = {"mode": [], "conversation": [], "workspace": []}
    for name, fact in deps.facts.items():
        names = facts.get(fact.scope, ())
        befores = (False, True) if UNKNOWN + name in names else (name in names,)
        try:
            after = fact.after if name != CHANGED else lambda before, _: before
            values = {bool(after(before, done)) for before in befores}
        except Exception as error:  # noqa: BLE001  # whatever a function of the owner's raises
            _log_once(name, error)
            values = {False, True}
        if True in values:
            true[fact.scope].append(name if False not in values else UNKNOWN + name)
    return {**facts, **true}  # type: ignore[typeddict-item]  # it has its keys


def _log_once(name: str, error: Exception) -> None:
    if name not in _logged:
        _logged.add(name)
        problem = to_one_line(f"{type(error).__name__}: {error}")
        log.warning("the fact %s cannot be determined: %s", name, problem)


async def read_facts(
    deps: AgentDeps, facts: Facts, names: Collection[str]
) -> dict[str, bool | None]:
    """What these facts are now; None for one that cannot be determined."""
    values: dict[str, bool | None] = {}
    for name in names:
        scope = deps.facts[name].scope if name in deps.facts else "mode"
        true = facts.get(scope, ())
        values[name] = None if UNKNOWN + name in true else name in true
    if CHANGED in values:
        try:
            digest = await digest_tests(deps)
            values[CHANGED] = digest != facts["tests"] if facts["tests"] else None
        except (OSError, ValueError, KeyError) as error:
            _log_once(CHANGED, error)
            values[CHANGED] = None
    return values


def enter_mode(state: State) -> Facts:
    """The facts when the thread enters another mode; in a sub-task they stay as they are."""
    facts = state.get("facts", {})
    return facts if state.get("subtask") else {**facts, "mode": []}


def end_conversation(
    deps: AgentDeps, parent: Parent, after: Facts, slug: str, files: Collection[str]
) -> Facts:
    """The facts with which the parent's conversation goes on in the mode ``slug``.

    ``files`` are what the sub-task wrote. A plan is one by the edit limit of the mode that goes
    on, and not by the sub-task's.
    """
    before = parent.get("facts", {})
    mode = {*after.get("mode", ())} - {PLAN} | {*before.get("mode", ())}
    if _has_plan(deps, slug, files):
        mode.add(PLAN)
    if slug != parent["mode"]:  # a person or the host has chosen another
        mode.clear()
    return {**after, "mode": sorted(mode), "conversation": before.get("conversation", [])}


def _has_plan(deps: AgentDeps, slug: str, files: Collection[str]) -> bool:
    grant = deps.catalog[slug].grant("edit")
    if grant is None or grant.file_regex is None:
        return False
    try:
        return any(map(grant.permits, files))
    except SlowPatternError:
        return False


async def begin_thread(deps: AgentDeps, state: State) -> State:
    """The state with how the test files are now, unless that is known, or nobody asks."""
    facts = state.get("facts", {})
    if "tests" in facts or deps.tests is None or not deps.tests.files:
        return state
    try:
        digest = await digest_tests(deps)
    except (OSError, ValueError) as error:
        _log_once(CHANGED, error)
        digest = ""  # what they were will not be known later either
    return {**state, "facts": {**facts, "tests": digest}}


async def digest_tests(deps: AgentDeps) -> str:
    """A digest of the owner's test files; raises ``OSError``, and ``ValueError`` for too many."""
    tests = deps.tests
    if tests is None:
        raise ValueError("no test files are named")
    if not tests.files:
        return NO_FILES
    return await asyncio.to_thread(_digest, deps.toolbox.workspace.root, tests.files)


def _digest(root: Path, names: Collection[str]) -> str:
    digest, size = sha256(), 0
    for files, path in enumerate(_walk([root / name for name in names]), 1):
        status = path.lstat()
        size += status.st_size
        if files > MAX_TEST_FILES or size > MAX_TEST_BYTES:
            raise ValueError(f"more test files than {MAX_TEST_FILES}, or {MAX_TEST_BYTES} bytes")
        is_link = path.is_symlink()
        if not is_link and not S_ISREG(status.st_mode):  # reading a pipe would wait for ever
            raise ValueError(f"{path.name!r} is neither a file nor a folder")
        text = str(path.readlink()).encode() if is_link else path.read_bytes()
        line = os.path.relpath(path, root), is_link, sha256(text).digest()
        digest.update(repr(line).encode())
    return digest.hexdigest()


def _walk(paths: Iterable[Path]) -> Iterator[Path]:
    """What is at these paths or below them, and what links there lead to; each once."""
    due, seen = [*paths], set[Path]()
    while due:
        path = due.pop()
        if path in seen or not os.path.lexists(path):
            continue
        seen.add(path)
        if path.is_symlink():
            yield path
            due.append(path.resolve())
        elif path.is_dir():
            due += sorted(entry for entry in path.iterdir() if entry.name not in NO_TEST_FILES)
        else:
            yield path


def describe_facts(values: Mapping[str, bool | None]) -> str:
    """What the facts are, in words."""
    words = {True: "yes", False: "no", None: "cannot be determined"}
    return ", ".join(f"{name}: {words[value]}" for name, value in values.items())
