"""``BindSharedAnswers``: a ``BindAnswers`` that knows what clients have read in any process."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from typing_extensions import override

from modeshift.modes.errors import StorageError
from modeshift.server.answers import BindAnswers, Client
from modeshift.server.checkpointer import database
from modeshift.server.thread_modes import OURSELVES

_NOTE = """
    INSERT INTO thread_reads (client, at) VALUES (:client, :at)
    ON CONFLICT (client) DO UPDATE SET at = excluded.at
"""
_FIND = "SELECT coalesce(max(at), 0) FROM thread_reads WHERE client = ANY(:clients)"


@dataclass(frozen=True)
class BindSharedAnswers(BindAnswers):
    """ASGI middleware; the times at which clients have read are in Postgres."""

    @override
    async def note_read(self, client: Client) -> None:
        if client[-1] != OURSELVES:
            with suppress(StorageError):  # the answer has been sent; what is not noted was not read
                await database.execute(_NOTE, client=_hash(client), at=time.time())

    @override
    async def find_read(self, clients: Sequence[Client]) -> float:
        ((at,),) = await database.execute(_FIND, clients=[_hash(client) for client in clients])
        return float(at)


def _hash(client: Client) -> str:
    """The client as a hash, because its text has a token in it."""
    return sha256("\n".join(client).encode()).hexdigest()
