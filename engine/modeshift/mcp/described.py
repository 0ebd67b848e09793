"""``ToolDescription``: a tool as its server describes it, which is what the model will read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from modeshift.modes.plain_text import find_invisible, to_one_line


@dataclass(frozen=True)
class ToolDescription:
    """The server's own words, unchanged: annotations are a claim, not a right."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """As on the wire: ``readOnlyHint`` and so on."""
    problem: str = ""
    """Why it is no tool of the protocol; empty if it is one."""

    @property
    def is_read_only(self) -> bool:
        """Whether the server says so."""
        return self.annotations.get("readOnlyHint") is True

    def digest(self) -> str:
        """Of all of it, whatever the order of keys."""
        told = [self.name, self.description, self.input_schema, self.annotations]
        return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

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
    found = {
        "new": new.keys() - old.keys(),
        "gone": old.keys() - new.keys(),
        "changed": {name for name in old.keys() & new.keys() if old[name] != new[name]},
    }
    return "; ".join(
        f"{word}: {', '.join(sorted(names))}" for word, names in found.items() if names
    )


def _write(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _describe_change(old: str, new: str) -> str:
    """From a little before the first difference: what was added may be far behind."""
    pairs = enumerate(zip(old, new, strict=False))
    end = next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))
    start = max(end - 30, 0)
    was, now = (f"{'...' if start else ''}{to_one_line(text[start:], 200)}" for text in (old, new))
    return f"was '{was}', is now '{now}'"
