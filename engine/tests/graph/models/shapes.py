"""``SHAPES``: the answers in ``shapes.yaml``, by service."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.graph.models.byte_server import Reply

ARGS = {"path": "é.txt"}
"""Of each call."""


@dataclass(frozen=True)
class Shape:
    """One service's answer with calls of ``read_file``, and the one in words behind the results."""

    model: str
    reason: str
    sent_back: list[Any]
    """What of the answer the next request holds."""
    whole: Reply
    streamed: Reply
    last: tuple[Reply, Reply]
    """Whole, and streamed."""
    variables: dict[str, str]
    """The address, with ``{url}`` in it, and the key."""
    text: str = ""
    ids: tuple[str, ...] | None = None
    """None where LangChain makes them up."""
    parameters: dict[str, Any] = field(default_factory=dict)


def _read(row: dict[str, Any]) -> Shape:
    whole, streamed, *last = (
        Reply.of(row.pop(key)) for key in ("whole", "streamed", "last_whole", "last_streamed")
    )
    ids, sent_back = row.pop("ids", None), json.loads(row.pop("sent_back"))
    ids = ids and tuple(ids)
    return Shape(
        whole=whole, streamed=streamed, last=(last[0], last[1]), ids=ids, sent_back=sent_back, **row
    )


_FILE = Path(__file__).with_suffix(".yaml")
SHAPES = {
    name: _read(row) for name, row in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()
}
ANTHROPIC, AZURE, KIMI, VLLM = (SHAPES[name] for name in ("anthropic", "azure", "kimi", "vllm"))
