"""A server that does what no SDK would: ``python -S raw.py BEHAVIOUR``. It starts at once."""

import json
import os
import signal
import sys
from typing import Any

PICTURES = ("iVBORw0KGgo=", "bm8gcGljdHVyZQ==", "!")
"""The beginning of one, another file, and no base64."""
BEHAVIOUR, *GIVEN = [*sys.argv[1:], ""]
NO_SCHEMA = {"type": "object", "properties": {}}
ASKED: dict[str, dict[str, Any]] = {
    "sampling/createMessage": {"messages": [], "maxTokens": 1},
    "roots/list": {},
    "elicitation/create": {
        "message": "Your password?",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(method: str) -> Any:
    """Ask the client for something; gives its answer."""
    send(id=f"ask-{method}", method=method, params=ASKED[method])
    return json.loads(sys.stdin.readline())


def list_tools() -> list[dict[str, Any]]:
    tool: dict[str, Any] = {"name": "do", "description": "Does.", "inputSchema": NO_SCHEMA}
    tool["annotations"] = {"readOnlyHint": True}
    return [tool | one for one in json.loads(GIVEN[0])] if "[" in GIVEN[0] else [tool]


def call(arguments: dict[str, Any]) -> str:
    match BEHAVIOUR:
        case "hang":
            while True:
                sys.stdin.readline()
        case "end":
            sys.exit("I have had enough")
        case "much":
            return "x" * 100_000_000
        case "flood":
            while True:
                sys.stdout.write('{"jsonrpc": "2.0", "method": "notifications/x"}\n' * 1000)
        case "environment":
            return json.dumps(dict(os.environ))
        case "asks":
            return json.dumps({method: ask(method).get("error") for method in ASKED})
    return f"done with {arguments}"


for line in sys.stdin:
    if BEHAVIOUR == "garbage":
        sys.stdout.write("Welcome!\n{}\n[1]\nnull\n\xff\n")
    message = json.loads(line)
    id, method = message.get("id"), message["method"]
    if method == "initialize" and BEHAVIOUR != "mute":
        info = {"name": "raw", "version": "1"}
        version = message["params"]["protocolVersion"]
        send(
            id=id,
            result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
        )
    elif method == "tools/list":
        send(id=id, result={"tools": list_tools()})
    elif method == "tools/call":
        text = call(message["params"].get("arguments", {}))
        content = [{"type": "text", "text": text}]
        if BEHAVIOUR == "pictures":
            content += [{"type": "image", "data": one, "mimeType": "image/png"} for one in PICTURES]
        send(id=id, result={"content": content})
    elif id is not None and BEHAVIOUR != "mute":
        send(id=id, error={"code": -32601, "message": "there is no such method"})
if BEHAVIOUR == "deaf":
    signal.pause()
