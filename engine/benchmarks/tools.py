"""``make bench``: what the sandbox adds to a command, and reading at a size that hurts.

Each is timed in turn with what one would run by hand; a ratio is the median of the
rounds' own.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from itertools import count as count_up
from itertools import cycle
from pathlib import Path
from typing import Any

from modeshift.modes.errors import ToolFailedError
from modeshift.tools.processes.sandboxes import Commands, NoSandbox, find_sandbox
from modeshift.tools.toolbox import Toolbox, build_toolbox
from modeshift.tools.workspace.ripgrep import program
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog

Timed = Callable[[], Awaitable[Any]]


async def bench(rounds: int, scale: int) -> None:
    """Print all figures; ``scale`` divides the sizes."""
    await commands(10 * rounds, 50_000 // scale)
    await search(rounds, 50_000 // scale)
    await listing(rounds, 100_000 // scale)
    await huge_file((1 << 30) // scale)
    await edits(rounds, 100_000 // scale)


async def commands(rounds: int, count: int) -> None:
    """A command that does nothing: plain, by the tool, in the sandbox, also among many files."""
    with ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(3)]
        empty, full, huge = folders
        _tree(Path(full), count)
        _tree(Path(huge), 10 * count, "")
        contenders: dict[str, Timed] = {
            "/bin/sh -c true": _shell,
            "execute_command": _tool(empty, Commands()),
        }
        sandbox = find_sandbox()
        if isinstance(sandbox, NoSandbox):
            print(f"no sandbox here: {sandbox.problem}")
        else:
            contenders["execute_command, sandbox"] = _tool(empty, Commands(sandbox))
            for folder, files in ((full, count), (huge, 10 * count)):
                tool = contenders[f"the same, {files} files"] = _tool(folder, Commands(sandbox))
                contenders[f"one new of {files} files"] = _change(Path(folder), tool)
        times = await _rounds(contenders, rounds)
    print(f"{'a command that does nothing':34}{'ms':>8}{'added':>8}")
    plain = times["/bin/sh -c true"]
    for name, own in times.items():
        added = statistics.median(a - b for a, b in zip(own, plain, strict=True))
        print(f"  {name:32}{statistics.median(own):8.2f}{added:8.2f}")


async def search(rounds: int, count: int) -> None:
    """A search of many files with few matches, against rg with nothing but the pattern."""
    with tempfile.TemporaryDirectory() as folder:
        _tree(Path(folder), count)
        toolbox = build_toolbox(Workspace(Path(folder)), load_catalog())
        command = [str(program()), "--no-heading", "-n", "needle 7.*", "./"]

        async def plain() -> None:
            subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: ASYNC221, S603

        await _compare(
            f"a search of {count} files",
            {
                "rg": plain,
                "search_files": _call(toolbox, "search_files", regex="needle 7.*", path="."),
                "the same, with context": _call(
                    toolbox, "search_files", regex="needle 7.*", glob="d*/*.txt", context=2
                ),
            },
            rounds,
        )


async def listing(rounds: int, count: int) -> None:
    """A listing of many files, as far as it goes and to its end, against rg."""
    with tempfile.TemporaryDirectory() as folder:
        _tree(Path(folder), count)
        workspace = Workspace(Path(folder))
        toolbox = build_toolbox(workspace, load_catalog())
        command = [str(program()), "--files", "--hidden", "./"]

        async def plain() -> None:
            subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: ASYNC221, S603

        async def whole() -> None:
            found = sum(1 for _ in workspace.list_entries(".", 2))
            if found < count:
                raise RuntimeError(f"{found} of {count} files")

        await _compare(
            f"a listing of {count} files",
            {
                "rg --files": plain,
                "list_files": _call(toolbox, "list_files", path=".", depth=2),
                "the same, with a glob": _call(toolbox, "list_files", glob="d*/f*7.txt"),
                "a glob of nothing": _call(toolbox, "list_files", glob="*.md"),
                "all that the workspace has": whole,
            },
            rounds,
        )


async def huge_file(size: int) -> None:
    """The first lines of a huge file, and some from its middle: time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        line = b"a line of text that is about as long as lines of code are, more or less\n"
        with Path(folder, "huge").open("wb") as file:  # noqa: ASYNC230
            for _ in range(size // (len(line) * 1000)):
                file.write(line * 1000)
        toolbox = build_toolbox(Workspace(Path(folder)), load_catalog())
        print(f"{f'a file of {size >> 20} MiB':34}{'ms':>8}{'MiB':>8}")
        middle = size // len(line) // 2
        for name, offset in (("its first lines", 1), ("lines in its middle", middle)):
            tracemalloc.start()
            start = time.perf_counter()
            await _call(toolbox, "read_file", path="huge", offset=offset, limit=100)()
            taken = (time.perf_counter() - start) * 1000
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            print(f"  {name:32}{taken:8.1f}{peak / (1 << 20):8.1f}")


async def edits(rounds: int, count: int) -> None:
    """One edit and twenty of a file of many lines, and one of a line that is not there.

    A call makes the changes, the next one takes them back.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"line {number} of a file like many others\n" for number in range(count)]
        for name in ("f", "twenty"):
            Path(folder, name).write_text("".join(lines))  # noqa: ASYNC240
        toolbox = build_toolbox(Workspace(Path(folder)), load_catalog())
        there, back = (
            [{"old": f"{a} {n} of", "new": f"{b} {n} of"} for n in range(0, count, count // 20)]
            for a, b in (("line", "row"), ("row", "line"))
        )

        async def rewrite() -> None:
            file = Path(folder, "f")
            file.write_text(file.read_text().replace("line 0 of", "line 0 of"))  # noqa: ASYNC240

        def edit(path: str, *turns: list[dict[str, str]]) -> Timed:
            calls = cycle([_call(toolbox, "edit_file", path=path, edits=turn) for turn in turns])

            async def run() -> None:
                await next(calls)()

            return run

        async def synced() -> None:
            file = Path(folder, "g")
            file.write_text(Path(folder, "f").read_text().replace("line 0 of", "row 0 of"))  # noqa: ASYNC240
            with file.open("rb") as written:  # noqa: ASYNC230
                os.fsync(written.fileno())

        async def miss() -> None:
            with suppress(ToolFailedError):
                await edit("f", [{"old": "line of a file like no other", "new": ""}])()

        await _compare(
            f"edits of {count} lines",
            {
                "read, replace, write": rewrite,
                "the same, and fsync": synced,
                "edit_file": edit("f", there[:1], back[:1]),
                "20 edits": edit("twenty", there, back),
                "a miss": miss,
            },
            rounds,
        )


async def _shell() -> None:
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "true")
    await process.wait()


def _tool(folder: str, how: Commands) -> Timed:
    toolbox = build_toolbox(Workspace(Path(folder)), load_catalog(), how)
    return _call(toolbox, "execute_command", command="true")


def _change(folder: Path, tool: Timed) -> Timed:
    numbers = count_up()

    async def run() -> None:
        (folder / f"d0/new{next(numbers)}").touch()
        await tool()

    return run


def _call(toolbox: Toolbox, name: str, **args: Any) -> Timed:
    async def call() -> None:
        await toolbox[name].runnable.ainvoke(args)

    return call


LINES = "".join(f"line {number} of a file like many others\n" for number in range(10))


def _tree(folder: Path, count: int, text: str = LINES) -> None:
    """Files of some lines each, a hundred to a folder; one in a hundred has a match."""
    for number in range(count):
        if number % 100 == 0:
            (folder / f"d{number // 100}").mkdir()
        rest = f"needle {number}\n" if number % 100 == 70 else ""
        (folder / f"d{number // 100}" / f"f{number}.txt").write_text(text + rest)
    (folder / ".gitignore").write_text("*.pyc\nnode_modules/\n")


async def _rounds(contenders: dict[str, Timed], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            await run()
            if number:  # the first round warms up
                times[name].append((time.perf_counter() - start) * 1000)
    return times


async def _compare(title: str, contenders: dict[str, Timed], rounds: int) -> None:
    """The first one is what the others are compared with."""
    times = await _rounds(contenders, rounds)
    print(f"{title:34}{'ms':>8}{'ratio':>8}")
    reference = next(iter(times.values()))
    for name, own in times.items():
        ratio = statistics.median(a / b for a, b in zip(own, reference, strict=True))
        print(f"  {name:32}{statistics.median(own):8.1f}{ratio:8.2f}")


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="7 by default")
    parser.add_argument("--scale", type=int, default=1, help="divides the sizes; 1 by default")
    given = parser.parse_args(arguments)
    if given.rounds < 1 or given.scale < 1:
        sys.exit("benchmarks.tools: rounds and scale must be 1 or more")
    asyncio.run(bench(given.rounds, given.scale))


if __name__ == "__main__":
    main()
