"""The agent's process, as an editor has it: with a pipe to it, and one from it."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.harness import prefork
from tests.harness.conversation import SECONDS
from tests.harness.root import TEMPLATE

LIMIT = 100_000_000


class AgentProcess:
    """Its standard streams are asyncio's."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    output: asyncio.ReadTransport
    """Of ``stdout``."""

    def __init__(self, started: prefork.Started) -> None:
        self.pid = started.pid
        self.kill = started.kill
        self.terminate = started.terminate
        self._wait = started.wait

    async def wait(self) -> int:
        return await asyncio.to_thread(self._wait, SECONDS)

    async def connect(self, incoming: int, outgoing: int) -> None:
        loop = asyncio.get_running_loop()
        self.stdout = asyncio.StreamReader(LIMIT)
        self.output, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.stdout), os.fdopen(incoming, "rb", 0)
        )
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(outgoing, "wb", 0))
        self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)


@asynccontextmanager
async def agent_process(
    environment: Mapping[str, str],
    log: Path,
    module: str = "modeshift.editor.main",
    folder: Path = TEMPLATE,
) -> AsyncIterator[AgentProcess]:
    """Started in ``folder``; it ends when its standard input does."""
    with log.open("ab") as errors:
        started, outgoing, incoming = prefork.start_with_pipes(
            module, env=environment, errors=errors.fileno(), cwd=folder
        )
    process = AgentProcess(started)
    await process.connect(incoming, outgoing)
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            await process.wait()
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            process.output.close()
