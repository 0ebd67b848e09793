"""What an MCP server is and what it offers, as plain data: whether it can be used or not."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Literal

from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import find_invisible, to_one_line


@dataclass(frozen=True)
class ToolDescription:
    """A tool in its server's own words, unchanged: annotations are a claim, not a right."""

    name: str
    description: str = ""
    input_schema: JsonObject = field(default_factory=dict)
    annotations: JsonObject = field(default_factory=dict)
    """As on the wire: ``readOnlyHint`` and so on."""
    problem: str = ""
    """Why it is no tool of the protocol; empty if it is one."""

    @property
    def is_read_only(self) -> bool:
        """Whether the server says that the tool only reads."""
        return self.annotations.get("readOnlyHint") is True

    def digest(self) -> str:
        """A digest of the whole description, whatever the order of its keys."""
        content = [self.name, self.description, self.input_schema, self.annotations]
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def find_hidden(self) -> list[str]:
        """The places whose characters a person would not see, escaped: a reason to refuse it."""
        return find_invisible("\n".join([self.name, *self._texts().values()]))

    def find_changes(self, now: "ToolDescription") -> str:
        """How ``now`` differs, in words; empty for not at all."""
        new = now._texts()
        return "; ".join(
            f"{word} {_describe_change(text, new[word])}"
            for word, text in self._texts().items()
            if text != new[word]
        )

    def _texts(self) -> dict[str, str]:
        return {
            "description": self.description,
            "schema": _write(self.input_schema),
            "annotations": _write(self.annotations),
        }


def describe_changes(before: Iterable[ToolDescription], now: Iterable[ToolDescription]) -> str:
    """The names of tools that are new, gone or described in another way; empty for none."""
    old, new = ({tool.name: tool for tool in tools} for tools in (before, now))
    changes = {
        "new": new.keys() - old.keys(),
        "gone": old.keys() - new.keys(),
        "changed": {name for name in old.keys() & new.keys() if old[name] != new[name]},
    }
    return "; ".join(
        f"{word}: {', '.join(sorted(names))}" for word, names in changes.items() if names
    )


def _write(value: JsonObject) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _describe_change(old: str, new: str) -> str:
    """Both texts from a little before the first difference, which may be far into them."""
    pairs = enumerate(zip(old, new, strict=False))
    end = next(
        (place for place, (before, other) in pairs if before != other), min(len(old), len(new))
    )
    start = max(end - 30, 0)
    was, now = (f"{'...' if start else ''}{to_one_line(text[start:], 200)}" for text in (old, new))
    return f"was '{was}', is now '{now}'"


DEFAULT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Server:
    """Either ``command`` (stdio) or ``url`` (streamable HTTP); its ``repr`` shows no secrets.

    All values are final: whoever makes it has resolved ``${VAR}`` and left out disabled servers.
    """

    name: str
    origin: Literal["user", "workspace", "editor"]
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All that the process gets beside PATH, HOME, LANG and the like."""
    cwd: str | None = None
    """Absolute; None for the workspace if it is the workspace's server, else for ``/``."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled_tools: tuple[str, ...] = ()
    """Names as the server lists them; never bound."""
    timeout: float = DEFAULT_SECONDS
    """Seconds: for the start with the list of tools, and for each call."""
    network: bool = False
    """Whether a process in the sandbox may reach the network; ``url`` is reached in any case."""
    writes: bool = False
    """Whether a process in the sandbox may change the workspace, but for what no command may."""
    pinned: Mapping[str, ToolDescription] | None = None
    """The tools that a person has accepted, by name: one that differs (``find_changes`` says how)
    or is not among them is not bound. None where the server is trusted as configured."""

    def identify(self) -> str:
        """The server without its secrets' values, as text; an approval is bound to it."""
        fields = asdict(self) | {"env": sorted(self.env), "headers": sorted(self.headers)}
        return json.dumps(fields, sort_keys=True)


MAX_CHARACTERS = 50_000
MAX_DEPTH = 30
_COMBINATORS = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The names that Anthropic takes for an argument."""


def mend_schema(schema: JsonObject) -> JsonObject:
    """The schema of a tool's arguments, as every provider takes one.

    What it loses is what no argument can have: its server checks the call anyway. Raises
    ``ValueError`` that says why it cannot be mended.
    """
    if len(json.dumps(schema)) > MAX_CHARACTERS:
        raise ValueError(f"its schema has more than {MAX_CHARACTERS} characters")
    if schema.get("type", "object") != "object":
        raise ValueError(f"its arguments are no object but {schema['type']!r}")
    properties = schema.get("properties") or {}
    if not isinstance(properties, dict):
        raise ValueError("its schema's 'properties' are no object")
    for name in properties:
        if _PROPERTY.fullmatch(name) is None:
            raise ValueError(f"no provider takes an argument that is called {name!r}")
    top = {key: value for key, value in schema.items() if key not in _COMBINATORS}
    mended = _mend({**top, "type": "object", "properties": properties}, 0)
    assert isinstance(mended, dict)
    required = mended.get("required")
    if required is not None:
        known = required if isinstance(required, list) else []
        mended["required"] = [name for name in known if name in properties]
    return mended


def _mend(schema: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise ValueError(f"its schema has more than {MAX_DEPTH} levels")
    if isinstance(schema, list):
        return [_mend(part, depth + 1) for part in schema]
    if not isinstance(schema, dict):
        return schema
    target = schema.get("$ref")
    if isinstance(target, str) and not target.startswith("#"):
        raise ValueError(f"its schema refers to another document, {target!r}")
    left = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    mended = {key: _mend(value, depth + 1) for key, value in left.items()}
    if mended.get("type") == "array" and "items" not in mended:
        mended["items"] = {}
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(mended.get(bound), bool):  # as in draft 4
            is_exclusive = mended.pop(bound)
            if is_exclusive and limit in mended:
                mended[bound] = mended.pop(limit)
    return mended
