"""``Narrowing``: a server before llama.cpp's that leaves the model one thing to say.

Model and words are of no account then; the form of the answer is llama.cpp's, be it whole or a
stream. Only some templates have a grammar that begins with a call: ``TEMPLATE`` is one.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.local.llama import SECONDS, Llama
from tests.provider.script import Answer
from tests.provider.server import Handler, listening

TEMPLATE = "CohereForAI-c4ai-command-r-plus-tool_use"
MOST = 400


def narrow(body: dict[str, Any], step: Answer) -> dict[str, Any]:
    """The request, such that its answer is ``step``: words, or one call."""
    kept = {name: value for name, value in body.items() if name not in ("tools", "tool_choice")}
    narrowed = {**kept, "max_tokens": MOST, "temperature": 0}
    if not step.calls:
        return {**narrowed, "grammar": f"root ::= {json.dumps(step.text)}"}
    (call,) = step.calls
    assert isinstance(call.args, dict)
    properties = {name: {"const": value} for name, value in call.args.items()}
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    tool = {"name": call.name, "description": "It is called.", "parameters": schema}
    tools = [{"type": "function", "function": tool}]
    return {**narrowed, "tools": tools, "tool_choice": "required", "parallel_tool_calls": False}


@contextmanager
def narrowing(llama: Llama, script: Sequence[Answer]) -> Iterator[str]:
    """The address of a server whose answers are ``script``, until the block ends."""
    steps = iter(script)

    class Narrowing(Handler):
        def do_POST(self) -> None:  # noqa: N802  # the name is http.server's
            body = narrow(self.read_body(), next(steps))
            headers = {"content-type": "application/json"}
            request = Request(llama.url + self.path, json.dumps(body).encode(), headers)
            try:
                answer = urlopen(request, timeout=SECONDS)
            except HTTPError as error:
                answer = error
            with answer:
                content = answer.read()
            kind = {"content-type": answer.headers["content-type"]}
            self.begin(answer.status, {**kind, "content-length": str(len(content))})
            self.wfile.write(content)

        def version_string(self) -> str:
            return "llama.cpp"

    server = ThreadingHTTPServer(("127.0.0.1", 0), Narrowing)
    with listening(server):
        yield f"http://127.0.0.1:{server.server_port}/v1"
