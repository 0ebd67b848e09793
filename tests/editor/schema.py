"""Messages against the protocol's own schema.

``schema.json`` is the file of that name in the npm package ``@agentclientprotocol/sdk`` 2.4.0
(Apache License 2.0), unchanged.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

FILE = Path(__file__).parent / "schema.json"


@cache
def _schema() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text()))


@cache
def _methods() -> dict[tuple[str, str], str]:
    """The name of the definition for each method, and for what it is: Request, Response, ..."""
    found = {}
    for name, definition in _schema()["$defs"].items():
        if "x-method" in definition:
            kind = next(
                kind for kind in ("Request", "Response", "Notification") if name.endswith(kind)
            )
            found[definition["x-method"], kind] = name
    return found


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = {"$ref": f"#/$defs/{name}", "$defs": _schema()["$defs"]}
    return Draft202012Validator(schema)


def check(messages: list[dict[str, Any]]) -> None:
    """Every message, of both sides, in the order in which they went; raises for one that is off."""
    asked: dict[Any, str] = {}
    for message in messages:
        assert message["jsonrpc"] == "2.0", message
        method = message.get("method")
        if method is not None:
            kind = "Request" if "id" in message else "Notification"
            if "id" in message:
                asked[_key(message)] = method
            _check(_methods()[method, kind], message["params"])
        elif "error" in message:
            _check("Error", message["error"])
        else:
            _check(_methods()[asked[_key(message)], "Response"], message["result"])


def _key(message: dict[str, Any]) -> Any:
    return message["id"]


def _check(name: str, value: Any) -> None:
    try:
        _validator(name).validate(value)
    except ValueError as error:
        raise AssertionError(f"no {name}: {error}\n{json.dumps(value)[:2000]}") from error
