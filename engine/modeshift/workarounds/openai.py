"""``tell_ends_apart``: whether a stream was whole, for ``openai``; seen with 3.52.0.

The client ends a stream in the same way at ``[DONE]`` and if the server hangs up; only its private
decoder can tell which. No issue asks for it yet: "AsyncStream: say whether [DONE] came".
"""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

WHOLE = "completed"
"""The ``finish_reason`` of a whole answer to which its server gives none."""
_HAS_REASON = re.compile(r'"finish_reason":\s*"[^"]')


def tell_ends_apart(client: Any) -> None:
    """Have the client's streams say at their end that they were whole."""
    make = client._make_sse_decoder
    client._make_sse_decoder = lambda: _Decoder(make())


class _Decoder:
    """Decodes a stream; before ``[DONE]`` it adds the reason for the end if none was given."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    async def aiter_bytes(self, parts: AsyncIterator[bytes]) -> AsyncIterator[object]:
        has_reason = False
        async for event in self._decoder.aiter_bytes(parts):
            if event.data.startswith("[DONE]") and not has_reason:
                end = {"index": 0, "delta": {}, "finish_reason": WHOLE}
                yield type(event)(data=json.dumps({"choices": [end]}))
            has_reason = has_reason or _HAS_REASON.search(event.data) is not None
            yield event
