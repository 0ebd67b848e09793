"""``Notifier``: tells a program or a webhook of the user's that a thread waits for a person."""

import asyncio
import hashlib
import hmac
import json
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from modeshift.modes.plain_data import JsonObject

log = logging.getLogger("modeshift")
SECONDS = 10
"""How long a program or a webhook may take; nothing waits for it."""
MAX_AT_ONCE = 20
MAX_REMEMBERED = 1000


@dataclass(frozen=True)
class Notifier:
    """Tells of each question once; one object for each process."""

    program: Sequence[str] = ()
    """The command line, which gets a JSON object on its standard input."""
    url: str = ""
    """The address, to which the object is posted; instead of a program."""
    secret: bytes = b""
    """For the HMAC-SHA256 of the body in the header ``x-modeshift-signature``."""
    has_content: bool = False
    """Whether the message also says what is asked."""
    _told: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.url:  # which is often a secret: httpx logs each address
            logging.getLogger("httpx").setLevel(logging.WARNING)

    def tell(self, thread: str, mode: str, request: JsonObject, titles: Sequence[str]) -> None:
        """Tell of a question, the interrupt's value, with its calls' titles; in the background."""
        question = str(request.get("question"))
        told_of = f"{thread} {question}"  # a copy of a thread asks the same
        if told_of in self._told:  # it is asked again, as the host has set something, say
            return
        if len(self._tasks) >= MAX_AT_ONCE:
            log.warning("NOTIFY: %d go on already; a question is not told", MAX_AT_ONCE)
            return
        self._told[told_of] = None
        if len(self._told) > MAX_REMEMBERED:
            self._told.popitem(last=False)
        actions = request.get("action_requests") or []
        kinds = sorted({str(action["name"]) for action in actions})
        told = {"thread": thread, "mode": mode, "kind": ", ".join(kinds), "question": question}
        if self.has_content:
            words = zip(titles, (str(action["description"]) for action in actions), strict=True)
            told["content"] = "\n\n".join(map("\n".join, words))
        task = asyncio.create_task(self._send(json.dumps(told).encode()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, body: bytes) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                await (self._post(body) if self.url else self._run(body))
        except (OSError, TimeoutError, httpx.HTTPError) as error:
            log.warning("NOTIFY: %s", type(error).__name__)

    async def _post(self, body: bytes) -> None:
        signature = hmac.new(self.secret, body, hashlib.sha256).hexdigest()
        headers = {"content-type": "application/json", "x-modeshift-signature": signature}
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            (await client.post(self.url, content=body, headers=headers)).raise_for_status()

    async def _run(self, body: bytes) -> None:
        process = await asyncio.create_subprocess_exec(
            *self.program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await process.communicate(body)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            log.warning("NOTIFY: the program ended with %s", process.returncode)
