"""JSON schemas of tools as providers take them: mended where that changes no call's meaning."""

import json
import re
from collections.abc import Mapping
from typing import Any

MAX_CHARACTERS = 50_000
MAX_DEPTH = 30
_COMBINATORS = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""What Anthropic takes as an argument's name."""


def mend_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
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


def _mend(schema: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"its schema has more than {MAX_DEPTH} levels")
    if isinstance(schema, list):
        return [_mend(one, depth + 1) for one in schema]
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
