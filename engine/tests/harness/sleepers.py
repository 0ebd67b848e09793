"""Processes that sleep, each test's own, to see whether what was started has ended."""

import time

import psutil

from tests.harness.conversation import until


def new_mark() -> str:
    """So many seconds to sleep: nobody else does."""
    return f"3{time.monotonic_ns() % 10**7}"


def find_sleepers(mark: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[:2] == ["sleep", mark]
    ]


async def wait_for(found: bool, mark: str) -> None:
    await until(lambda: bool(find_sleepers(mark)) is found)
