"""``ToolDescription``: a tool as its server describes it, which is what the model will read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any


@dataclass(frozen=True)
class ToolDescription:
    """The server's own words, unchanged: annotations are a claim, not a right."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """As on the wire: ``readOnlyHint`` and so on."""

    @property
    def is_read_only(self) -> bool:
        """Whether the server says so."""
        return self.annotations.get("readOnlyHint") is True

    def digest(self) -> str:
        """Of all of it, whatever the order of keys."""
        told = [self.name, self.description, self.input_schema, self.annotations]
        return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
