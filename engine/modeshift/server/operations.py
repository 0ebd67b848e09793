"""``Operations``: whether the server is ready, its metrics and its traces."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from modeshift.modes.errors import ConfigurationError, InvalidInputError
from modeshift.observing import listeners
from modeshift.project import say_how_to_add
from modeshift.server.checkpointer import database, read_questions, settings
from modeshift.server.thread_modes import get_deps
from modeshift.starting import collect_rarely
from modeshift.threads.stopping import stop
from modeshift.tools.processes.background import end_every_command

READY, METRICS = "/modeshift/ready", "/modeshift/metrics"


@dataclass(frozen=True)
class Operations:
    """ASGI middleware, behind the gate: says without a token whether the server is ready.

    LangGraph's own ``/metrics`` needs no token either: ours takes its place, and needs one.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer ``GET /modeshift/ready``; all else goes on."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path == "/metrics":
            scope = {**scope, "path": METRICS, "raw_path": METRICS.encode()}
        await (await _check_ready() if path == READY else self.app)(scope, receive, send)


async def _check_ready() -> Response:
    problem = "the server stops" if stop.is_due else None
    if problem is None:
        try:
            await database.check()  # fails at once, while ``read_questions`` would wait
            await read_questions()
        except Exception as error:  # noqa: BLE001  # each database has its own
            problem = f"the database does not answer: {type(error).__name__}"
    return JSONResponse({"ready": problem is None, "problem": problem}, 503 if problem else 200)


async def show_metrics(request: Request) -> Response:
    """Steps, model calls, tokens, calls by how they ended, refusals, open questions.

    ---
    summary: What Prometheus reads
    tags: [Operations]
    responses: {"200": {description: "In the text format of Prometheus"}}
    """
    try:
        from modeshift.server.metrics import write  # noqa: PLC0415  # an extra
    except ImportError:
        raise InvalidInputError(f"metrics are not installed: {say_how_to_add('metrics')}") from None
    journal = (await get_deps(request)).started_calls.journal
    text, kind = write(await read_questions(), await journal.count_effects())
    return Response(text, media_type=kind)


def _start_telling() -> None:
    """Count, and trace if that is configured. Raises ``ConfigurationError``."""
    try:
        from modeshift.server import metrics  # noqa: PLC0415  # an extra

        if metrics.listen not in listeners:
            listeners.append(metrics.listen)
    except ImportError:
        pass
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return
    try:
        from modeshift.server import tracing  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ConfigurationError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT is set: {say_how_to_add('tracing')}, or unset it"
        ) from error
    tracing.start_tracing()


ROUTES = [Route(METRICS, show_metrics, methods=["GET"])]


log = logging.getLogger("modeshift")


@asynccontextmanager
async def serving_well() -> AsyncIterator[None]:
    """After SIGTERM or Ctrl-C the steps that run may end, within ``STOP_SECONDS``.

    What happens is counted, and traced where that is set. Raises ``ConfigurationError``.
    """
    _start_telling()
    collect_rarely()
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}

    def begin(number: int, frame: FrameType | None) -> None:
        log.warning("the server stops; a step may take %d s more", settings.stop_seconds)
        loop.call_soon_threadsafe(stop.begin, settings.stop_seconds)
        if callable(before[number]):
            before[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, begin)
    try:
        yield
    finally:
        stop.begin(settings.stop_seconds)
        await stop.wait()
        await end_every_command()
