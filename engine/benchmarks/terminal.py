"""``make bench``: an answer of 10,000 lines in the terminal, against ``cat`` of the same lines.

A model server on loopback sends the answer as fast as it is taken. Keys are pressed while it
comes, and the seconds counted until each is shown; the process's memory is read before and after.
"""

import argparse
import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

from benchmarks.doors import SECONDS, prepare, read_until
from tests.harness.root import TEMPLATE

LINES, AT_ONCE = 10_000, 50
FIRST_KEY = 0x400
"""Letters that nothing else shows, each pressed once."""
LAST = "the last line of them"
TEXT = "".join(f"Line {n} with **a word** and `code`\n" for n in range(LINES - 1)) + LAST


class Answers(BaseHTTPRequestHandler):
    """The answer, as an OpenAI server streams it."""

    def do_POST(self) -> None:
        """Send all of it, whatever was asked."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        lines = TEXT.splitlines(keepends=True)
        for at in range(0, LINES, AT_ONCE):
            self._send({"content": "".join(lines[at : at + AT_ONCE])}, None)
        self._send({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, delta: dict[str, str], finish: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
        self.wfile.write(b"data: " + json.dumps({**event, "choices": [choice]}).encode() + b"\n\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def time_cat(folder: Path) -> float:
    """Seconds until the last line has come through a terminal."""
    path = folder / "lines.txt"
    path.write_text(TEXT)
    terminal, theirs = pty.openpty()
    begin = time.perf_counter()
    process = subprocess.Popen(["cat", str(path)], stdout=theirs)  # noqa: S603, S607
    try:
        read_until(terminal, LAST.encode(), begin + SECONDS)
        return time.perf_counter() - begin
    finally:
        process.wait()
        os.close(terminal)
        os.close(theirs)


def time_chat(folder: Path, address: str) -> tuple[float, float, float]:
    """Seconds from Enter to the last line, the longest until a key was shown, and MiB more."""
    env = prepare(folder) | {
        "TERM": "xterm", "MODEL": "openai:m", "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none",
    }  # fmt: skip
    terminal, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 80))
    process = psutil.Popen(
        [sys.executable, "-m", "modeshift", "chat"], cwd=TEMPLATE, env=env, stdin=theirs,
        stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    try:
        read_until(terminal, b"ask>", time.perf_counter() + SECONDS)
        before = process.memory_info().rss
        os.write(terminal, b"go\r")
        begin = time.perf_counter()
        longest = _press_keys(terminal, begin + SECONDS)
        taken = time.perf_counter() - begin
        return taken, longest, (process.memory_info().rss - before) / 2**20
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(theirs)


def _press_keys(terminal: int, end: float) -> float:
    """Press a key whenever the one before is shown, until the last line is; the longest wait."""
    seen, longest, pressed, key = b"", 0.0, 0.0, FIRST_KEY
    while select.select([terminal], [], [], max(0, end - time.perf_counter()))[0]:
        seen = seen[-100:] + os.read(terminal, 100_000)
        now = time.perf_counter()
        if pressed and chr(key).encode() in seen:
            longest, pressed, key = max(longest, now - pressed), 0.0, key + 1
        if LAST.encode() in seen:
            return longest
        if not pressed:
            os.write(terminal, chr(key).encode())
            pressed = now
    raise RuntimeError(f"the last line has not come: {seen!r}")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds; 5 by default")
    rounds = parser.parse_args().rounds
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    with tempfile.TemporaryDirectory() as folder:
        taken = [(time_cat(Path(folder)), *time_chat(Path(folder), address)) for _ in range(rounds)]
    server.shutdown()
    cat, chat, longest, memory = (statistics.median(column) for column in zip(*taken, strict=True))
    print(f"\n{LINES:,} lines{'s':>18}{'a key, s':>10}{'MiB more':>10}")
    print(f"  {'cat':24}{cat:>7.2f}")
    print(f"  {'make chat':24}{chat:>7.2f}{longest:>10.3f}{memory:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
