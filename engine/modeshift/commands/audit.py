"""``make audit``: who decided what in a thread, what has run, and whether that was changed."""

import asyncio
from collections.abc import Iterator, Sequence
from json import dumps
from typing import Any

from modeshift.agent import open_agent
from modeshift.configuration.databases import list_kept
from modeshift.configuration.settings import Settings, load_settings
from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.modes.plain_text import to_one_line
from modeshift.storage.database import Database
from modeshift.storage.kept_threads import AUDIT_ENDS, spell_thread
from modeshift.threads.audit import AuditEntry, find_breaks, find_changed, read_entries

_THREADS = "SELECT DISTINCT thread_id FROM audit ORDER BY thread_id"
_ENDS = f"SELECT thread_id, number, digest, deleted_at FROM {AUDIT_ENDS} ORDER BY deleted_at"  # noqa: S608  # ours


def main(thread: str | None = None, *, json: bool = False) -> Iterator[str]:
    """The entries of one thread, or how each thread's end.

    Raises ``UserError`` for an audit that is broken.
    """
    settings = load_settings()
    if thread is not None:
        yield from asyncio.run(_report_thread(settings, spell_thread(thread), json))
    else:
        yield from asyncio.run(_report_all(settings, json))


async def _report_thread(settings: Settings, thread: str, json: bool) -> list[str]:
    entries, messages = list[AuditEntry](), list[Any]()
    for file in list_kept(settings):
        async with settings.open_database(file) as database:
            entries = entries or await _read(database, thread)
        if entries and not messages:
            async with open_agent(settings, file=file) as agents:
                values = (await agents.thread(thread).state()).values
                parts = (values, *values.get("parents", ()), *values.get("subtasks", ()))
                messages = [one for part in parts for one in part.get("messages", ())]
    if not entries:
        raise InvalidInputError(f"nothing was decided or changed in a thread {thread}")
    if problems := [*find_breaks(entries), *find_changed(entries, messages)]:
        raise StorageError(f"the audit of {thread} was changed: {'; '.join(problems)}")
    if json:
        return [
            dumps({"number": entry.number, "entry_digest": entry.digest, **entry.values})
            for entry in entries
        ]
    shown = [line for entry in entries for line in _show(entry)]
    return [*shown, f"{len(entries)} entries, as they were written; the last: {entries[-1].digest}"]


async def _read(database: Database, thread: str) -> list[AuditEntry]:
    if not await database.list_columns("audit"):
        return []
    return await read_entries(database, thread)


def _show(entry: AuditEntry) -> Iterator[str]:
    values = entry.values
    where = f"{values['mode']}, {values['approvals']}"
    if values["limit"]:
        where += f", limit {values['limit']}"
    yield f"{entry.number}  {values['when']}  {values['kind']}  ({where})"
    if values["kind"] == "undo":
        yield from (f"   {to_one_line(path)} {does}" for path, does in values["files"].items())
        return
    calls: Sequence[Any] = values.get("calls") or [values]
    for call in calls:
        what = call.get("decision") or ("not asked" if "calls" in values else call["status"])
        who = f" by {values['who']}" if call.get("decision") and values.get("who") else ""
        by = " as approved" if call.get("approved") else ""
        reason = to_one_line(call["reason"])
        yield f"   {call['tool']}: {what}{who}{by} ({call['verdict']}: {reason})  {call['call']}"


async def _report_all(settings: Settings, json: bool) -> list[str]:
    threads, problems = list[dict[str, Any]](), list[str]()
    for file in list_kept(settings):
        async with settings.open_database(file) as database:
            if not await database.list_columns("audit"):
                continue
            for (id,) in await database.execute(_THREADS):
                entries = await read_entries(database, id)
                problems += [f"{id}: {problem}" for problem in find_breaks(entries)]
                last = entries[-1]
                threads.append({"thread": id, "entries": last.number, "digest": last.digest})
            for id, number, digest, when in await database.execute(_ENDS):
                end = {"thread": id, "entries": number, "digest": digest, "deleted": when}
                threads.append(end)
    if problems:
        raise StorageError(f"an audit was changed: {'; '.join(problems)}")
    if json:
        return [dumps(each) for each in threads]
    return [
        f"{each['thread']}  {each['entries']:>5} entries  {each['digest']}"
        + (f"  deleted {each['deleted']}" if "deleted" in each else "")
        for each in threads
    ] or ["nothing was decided or changed in any thread"]
