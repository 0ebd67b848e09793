"""``make bench``: what the journal costs for each call that changes something, in milliseconds."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from langchain_core.messages import ToolMessage

from modeshift.modes.facts import Done
from modeshift.storage.database import Database
from modeshift.storage.opening import open_database
from modeshift.threads.journal import FileDigests, Journal
from tests.harness.postgres import find_postgres, run_postgres

CALLS = 300


async def time_calls(database: Database, folder: Path) -> tuple[float, float]:
    """What a call waits for (has it begun, it begins, it has ended): median, fastest tenth."""
    journal = Journal(database, folder / "threads")
    result, times = ToolMessage("x" * 2000, tool_call_id="a"), []
    done = Done(tool="edit_file", mode="code", is_success=True, written=("f",))

    async def digest(_: FileDigests) -> FileDigests:
        return {}

    hold = journal.hold("thread")
    await hold.take()
    for number in range(CALLS):
        began = time.perf_counter()
        await journal.find(str(number), digest)
        files = {"f": "0" * 64}, {"f": "1" * 64}
        call = await hold.begin(str(number), "edit_file", *files, done)
        assert call is not None
        await call.finish(result, files[1], done)
        call.leave()
        times.append((time.perf_counter() - began) * 1000)
    await database.close()
    return statistics.median(times), statistics.quantiles(times, n=10)[0]


async def bench(rows: Sequence[tuple[str, Database]], folder: Path) -> None:
    """Measure everything and print the table."""
    print(f"{'journal':24}{'ms/call':>9}{'fastest tenth':>15}")
    for name, database in rows:
        median, fast = await time_calls(database, folder)
        print(f"  {name:22}{median:>9.2f}{fast:>15.2f}", flush=True)


def main() -> None:
    """Run; Postgres only where it is installed."""
    programs = find_postgres()
    with (
        tempfile.TemporaryDirectory() as name,
        run_postgres(programs) if programs else nullcontext() as server,
    ):
        folder = Path(name)
        rows = [
            ("SQLite, normal", open_database("", folder / "normal")),
            ("SQLite, full", open_database("", folder / "full", synchronous="full")),
        ]
        if server is not None:
            rows.append(("Postgres", open_database(server.make_database(), folder)))
        asyncio.run(bench(rows, folder))


if __name__ == "__main__":
    main()
