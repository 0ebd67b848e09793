"""``make audit``: who decided what in a thread, what has run, and whether that was changed."""

import asyncio
from collections.abc import Iterator, Sequence
from json import dumps

from langchain_core.messages import AnyMessage

from modeshift.agent import open_agent
from modeshift.configuration.databases import list_kept
from modeshift.configuration.settings import Settings, load_settings
from modeshift.modes.errors import InvalidInputError, StorageError
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line
from modeshift.storage.database import Row
from modeshift.storage.kept_threads import AUDIT_ENDS, spell_thread
from modeshift.threads.audit import AuditEntry, find_breaks, find_changed, read_entries

_END = f"SELECT number, digest, deleted_at FROM {AUDIT_ENDS} WHERE thread_id = :thread"  # noqa: S608  # ours


def main(thread: str | None = None, *, json: bool = False) -> Iterator[str]:
    """The entries of a thread, or what is left of one that was deleted.

    Raises ``UserError`` for an audit that is broken.
    """
    if thread is None:
        raise InvalidInputError("say which: make audit THREAD=id; make usage lists the threads")
    yield from asyncio.run(_report_thread(load_settings(), spell_thread(thread), json))


async def _report_thread(settings: Settings, thread: str, json: bool) -> list[str]:
    entries, messages, ends = list[AuditEntry](), list[AnyMessage](), list[Row]()
    for file in list_kept(settings):
        async with settings.open_database(file) as database:
            if await database.list_columns("audit"):
                entries = entries or await read_entries(database, thread)
                ends += await database.execute(_END, thread=thread)
        if entries and not messages:
            async with open_agent(settings, file=file) as agents:
                values = (await agents.thread(thread).state()).values
                parts = (values, *values.get("parents", ()), *values.get("subtasks", ()))
                messages = [one for part in parts for one in part.get("messages", ())]
    if not entries and ends:
        number, digest, when = ends[-1]
        end = {"number": number, "entry_digest": digest, "deleted_at": when}
        return [dumps(end) if json else f"deleted {when}; entry {number} was the last: {digest}"]
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


def _show(entry: AuditEntry) -> Iterator[str]:
    values = entry.values
    where = f"{values['mode']}, {values['approvals']}"
    if values["limit"]:
        where += f", limit {values['limit']}"
    yield f"{entry.number}  {values['when']}  {values['kind']}  ({where})"
    if values["kind"] == "undo":
        yield from (f"   {to_one_line(path)} {does}" for path, does in values["files"].items())
        return
    calls: Sequence[JsonObject] = values.get("calls") or [values]
    for call in calls:
        what = call.get("decision") or ("not asked" if "calls" in values else call["status"])
        who = f" by {values['who']}" if call.get("decision") and values.get("who") else ""
        by = " as approved" if call.get("approved") else ""
        reason = to_one_line(call["reason"])
        yield f"   {call['tool']}: {what}{who}{by} ({call['verdict']}: {reason})  {call['call']}"
