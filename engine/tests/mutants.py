"""``python -m tests.mutants``: makes each change of ``mutants.toml`` in a copy; its test must fail.

A change whose test passes has survived: nothing guards what it breaks. Before the changes of a
file of tests its tests run once as they are, for a test that fails anyway catches nothing.
"""

import argparse
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from subprocess import PIPE

from tests.harness import prefork
from tests.harness.root import ENGINE

DATA = ENGINE / "tests/mutants.toml"
COPIES = ENGINE.parent / ".venv/mutants"
SECONDS = 240
"""For a test; as it is it takes less, so one that takes longer has noticed the change."""
PLAIN = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=short")
CAUGHT, SLOW, SURVIVED = "caught", f"caught, took {SECONDS} s", "SURVIVED"
OUTCOMES = {0: SURVIVED, 1: CAUGHT, 4: "NO SUCH TEST", 5: "NO SUCH TEST", -1: SLOW}
"""By pytest's exit code."""


@dataclass(frozen=True)
class Mutant:
    """A change that breaks a promise, and the test that must fail then."""

    breaks: str
    file: str
    """From the root of the project; ``test`` is from ``engine``, as pytest takes it."""
    old: str
    new: str
    test: str

    def apply(self, text: str) -> str | None:
        """The file's text with the change; None where ``old`` is not there exactly once."""
        return text.replace(self.old, self.new) if text.count(self.old) == 1 else None


def load(pattern: str = "") -> list[Mutant]:
    """Those in which the pattern is part of the file, the promise or the test."""
    rows = [Mutant(**row) for row in tomllib.loads(DATA.read_text(encoding="utf-8"))["mutant"]]
    return [row for row in rows if pattern in f"{row.file}\n{row.breaks}\n{row.test}"]


class Copy:
    """The project in a folder of its own, with a process that forks itself for each test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        _copy_project(root)
        _copy_environment(root / ".venv")
        python = root / ".venv/bin/python"
        self._log = root / "output.txt"
        command = [str(python), "-m", "tests.mutants", "--serve", str(self._log)]
        environment = os.environ | {"PYTHONPATH": f"{root / 'engine'}:{root}"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or each test compiles all anew
        self._process = subprocess.Popen(  # our own
            command, cwd=root / "engine", env=environment, stdin=PIPE, stdout=PIPE, text=True
        )

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[bool]:
        """The mutant in the copy; gives whether it still applies."""
        file = self.root / mutant.file
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        after = mutant.apply(before)
        if after is None:
            yield False
            return
        times = os.stat(file)
        file.write_text(after, encoding="utf-8")
        try:
            yield True
        finally:
            file.write_text(before, encoding="utf-8")
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # what is compiled fits again

    def run(self, *tests: str) -> int:
        """pytest's exit code; -1 if it took too long."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps([*PLAIN, *tests])}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def read_output(self) -> str:
        """The end of what the last test printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _copy_project(root: Path) -> None:
    """What git knows or would know, as a repository of its own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ENGINE.parent, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        if name and (ENGINE.parent / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ENGINE.parent / name, root / name)
    who = ("-c", "user.name=mutants", "-c", "user.email=mutants@example.com")
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "As it is"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def _copy_environment(folder: Path) -> None:
    """The packages by links, but for the engine, which is the copy's."""
    ours = ENGINE.parent / ".venv"
    packages = next((ours / "lib").glob("python*/site-packages"))
    theirs = folder / packages.relative_to(ours)
    theirs.mkdir(parents=True)
    for package in packages.iterdir():
        (theirs / package.name).symlink_to(package)
    (theirs / "modeshift.pth").unlink()
    (theirs / "modeshift.pth").write_text(f"{folder.parent / 'engine'}\n", encoding="utf-8")
    shutil.copy(ours / "pyvenv.cfg", folder)
    shutil.copytree(ours / "bin", folder / "bin", symlinks=True)
    for script in (folder / "bin").glob("modeshift*"):
        script.write_text(script.read_text().replace(str(ours), str(folder)))


def try_group(copies: "SimpleQueue[Copy]", mutants: list[Mutant]) -> Iterator[tuple[Mutant, str]]:
    """The outcome of each, for mutants whose tests are in one file."""
    copy = copies.get()
    try:
        if copy.run(*dict.fromkeys(mutant.test for mutant in mutants)):
            yield from ((mutant, "FAILS UNCHANGED") for mutant in mutants)
            print(copy.read_output(), file=sys.stderr)  # noqa: T201
            return
        for mutant in mutants:
            with copy.changed(mutant) as applies:
                code = copy.run(mutant.test) if applies else 0
            yield mutant, OUTCOMES.get(code, "CANNOT RUN") if applies else "DOES NOT APPLY"
    finally:
        copies.put(copy)


def run(mutants: Iterable[Mutant], jobs: int) -> Counter[str]:
    """Try them, and print what comes of each."""
    groups = defaultdict[str, list[Mutant]](list)
    for mutant in mutants:
        groups[mutant.test.partition("::")[0]].append(mutant)
    total = sum(map(len, groups.values()))
    copies: SimpleQueue[Copy] = SimpleQueue()
    made = [Copy(COPIES / str(number)) for number in range(min(jobs, len(groups)))]
    for copy in made:
        copies.put(copy)
    outcomes = Counter[str]()

    def try_and_print(group: list[Mutant]) -> None:
        for mutant, outcome in try_group(copies, group):
            outcomes[outcome] += 1
            count = f"[{outcomes.total()}/{total}]"
            print(f"{count} {outcome}: {mutant.breaks} | {mutant.file} | {mutant.test}", flush=True)  # noqa: T201

    with ThreadPoolExecutor(len(made)) as threads:
        list(threads.map(try_and_print, groups.values()))
    for copy in made:
        copy.close()
    return outcomes


def serve(log: Path) -> None:
    """Run the tests that come line by line, each in a fork; for the process of a copy."""
    for name in (*prefork.LIBRARIES, *prefork.MODULES, "mcp", "tests.harness.plugin"):
        importlib.import_module(name)
    for name in list(sys.modules):  # what they import stays; these a fork imports as they are then
        if name.partition(".")[0] in {"modeshift", "graph", "tools", "tests"}:
            del sys.modules[name]
    gc.freeze()
    temporary = Path(tempfile.mkdtemp(prefix="mutants-"))  # the copy's .gitignore is not for it
    for line in sys.stdin:
        if child := os.fork():
            print(_wait(child), flush=True)  # noqa: T201
            continue
        os.setsid()
        with log.open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os._exit(_run_pytest([*json.loads(line), f"--basetemp={temporary}"]))
    shutil.rmtree(temporary, ignore_errors=True)


def _run_pytest(arguments: list[str]) -> int:
    import pytest  # noqa: PLC0415  # it is imported before the fork

    return int(pytest.main(arguments))


def _wait(child: int) -> int:
    """Its exit code; -1 if it had to be killed."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what it has left running
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def main() -> int:
    """Exit code 1 where not every mutant is caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="part of a file, a promise or a test")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return 0
    mutants = load(options.only)
    if not mutants:
        parser.error(f"no mutant has {options.only!r} in its file, its promise or its test")
    outcomes = run(mutants, max(options.jobs, 1))
    print(", ".join(f"{count} {outcome.lower()}" for outcome, count in outcomes.most_common()))  # noqa: T201
    return 0 if set(outcomes) <= {CAUGHT, SLOW} else 1


if __name__ == "__main__":
    sys.exit(main())
