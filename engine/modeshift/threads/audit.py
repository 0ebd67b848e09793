"""``AuditEntry``: who decided what, or what has run, in a chain of digests for each thread.

An entry's digest is of the entry and of the digest before it, so one that is changed, left out or
put elsewhere is found by whoever knows the last one. It is written by the process that runs the
thread, before what it tells of takes effect, or right after.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from modeshift.modes.plain_data import JsonObject
from modeshift.storage.database import Executor
from modeshift.threads.journal import Journal

_LAST = """
    SELECT number, digest, EXISTS (
        SELECT 1 FROM audit WHERE thread_id = :thread AND reference = :reference
    ) FROM audit WHERE thread_id = :thread ORDER BY number DESC LIMIT 1
"""
_APPEND = """
    INSERT INTO audit (thread_id, number, reference, entry, digest)
    VALUES (:thread, :number, :reference, :entry, :digest) ON CONFLICT DO NOTHING RETURNING number
"""
_LIST = "SELECT number, entry, digest FROM audit WHERE thread_id = :thread ORDER BY number"


@dataclass(frozen=True)
class AuditEntry:
    """One line of a thread's audit, as it is kept."""

    number: int
    """From 1."""
    text: str
    """A JSON object."""
    digest: str

    @property
    def values(self) -> JsonObject:
        """The fields of the entry."""
        return dict(json.loads(self.text))


def chain(before: str, number: int, text: str) -> str:
    """The digest of an entry behind the one with the digest ``before``; empty for the first."""
    return sha256(f"{before}\n{number}\n{text}".encode()).hexdigest()


async def append_entry(
    journal: Journal, thread: str, reference: str, values: Mapping[str, object]
) -> None:
    """Add an entry, unless it is there, as after a crash; raises ``StorageError``."""
    when = datetime.now(UTC).isoformat()
    text = json.dumps({"when": when, **values}, sort_keys=True, ensure_ascii=False)
    named = {"thread": thread, "reference": reference}
    while True:
        last = await journal.look(_LAST, **named)
        number, before, is_there = last[0] if last else (0, "", False)
        if is_there:
            return
        digest = chain(before, number + 1, text)
        # Calls that run beside each other end at once: one of them comes first.
        if await journal.execute(_APPEND, number=number + 1, entry=text, digest=digest, **named):
            return


async def read_entries(database: Executor, thread: str) -> list[AuditEntry]:
    """A thread's entries in their order."""
    return [AuditEntry(*row) for row in await database.execute(_LIST, thread=thread)]


def find_breaks(entries: Sequence[AuditEntry]) -> Iterator[str]:
    """Where the chain is broken, in words."""
    before = ""
    for place, entry in enumerate(entries, 1):
        if entry.number != place:
            yield f"entry {place} is missing: the next one is {entry.number}"
            return
        if entry.digest != chain(before, place, entry.text):
            yield f"entry {place} is not what was written, or not in its place"
            return
        before = entry.digest


def find_changed(entries: Sequence[AuditEntry], messages: Sequence[AnyMessage]) -> Iterator[str]:
    """In words, the results in the conversation that are not those of the calls that have run.

    A result that a summary has replaced is none of them. Small servers number their calls again in
    a fork, or after a summary, so a call is known by its message, too.
    """
    results, asking = dict[tuple[str | None, str], ToolMessage](), ""
    for one in messages:
        if isinstance(one, AIMessage):
            asking = str(one.id)
        elif isinstance(one, ToolMessage):
            results[asking, one.tool_call_id] = one
    for entry in entries:
        values = entry.values
        result = results.get((values.get("message"), str(values.get("call"))))
        if result is not None and values.get("result") not in (None, digest_result(result)):
            yield f"entry {entry.number}: the result of {values['tool']} is another by now"


def digest_result(message: ToolMessage) -> str:
    """The digest of what the model was told of a call."""
    return sha256(json.dumps(message.content, sort_keys=True).encode()).hexdigest()
