"""A clone that is another agent than a coding one: a shop's support, with an API of its own."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.harness.clone import change, copy_template
from tests.provider.server import Handler, listening

TOOLS = '''\
"""The shop's orders, by its API."""

import os

import httpx

from modeshift.tools import Tool, ToolDeps, get_idempotency_key


def _ask(method: str, path: str, body: object = None) -> str:
    key = get_idempotency_key()
    headers = {} if key is None else {"Idempotency-Key": key}
    return httpx.request(
        method, os.environ["SHOP"] + path, json=body, headers=headers, trust_env=False
    ).text


def find_order(order: str) -> str:
    """Look an order up."""
    return _ask("GET", f"/orders/{order}")


def send_note(order: str, text: str) -> str:
    """Write to the customer."""
    return _ask("POST", f"/orders/{order}/notes", {"text": text})


def refund(order: str, amount: float, why: str = "") -> str:
    """Pay money back."""
    return _ask("POST", f"/orders/{order}/refunds", {"amount": amount})


def order_tools(_: ToolDeps) -> list[Tool]:
    return [
        Tool.of(find_order, "outside-read", subject=("order",)),
        Tool.of(send_note, "outside", may_be_remembered=True),
    ]


def refund_tools(_: ToolDeps) -> list[Tool]:
    return [Tool.of(refund, "outside", subject=("order", "amount"))]
'''
LISTED = """\
    ("orders", "tools.orders:order_tools"),
    ("refunds", "tools.orders:refund_tools"),
"""
MODES = {
    "triage": "groups: [orders]\nsubtasks: []\nconversation: [questions]\npermissions: "
    "{send_note: deny}\ndefault: true",
    "refund": "groups: [orders, refunds]\nsubtasks: []\nconversation: []",
    "manager": "groups: []\nsubtasks: []",
}


def make_shop(clone: Path) -> None:
    """Write the clone: no tool of it works on files or runs commands."""
    copy_template(clone)
    shutil.rmtree(clone / "cassettes")
    for file in clone.glob("modes/*"):
        file.unlink()
    for slug, rest in MODES.items():
        head = f"slug: {slug}\nname: {slug.capitalize()}\nroleDefinition: You help.\n"
        (clone / f"modes/{slug}.yaml").write_text(f"{head}{rest}\n")
    listed = clone / "tools/__init__.py"
    for group in ("read", "edit", "command"):
        (clone / f"tools/{group}.py").unlink()
        change(listed, f'    ("{group}", "tools.{group}:{group}_tools"),\n', "")
    change(listed, "TOOLS = (\n", f"TOOLS = (\n{LISTED}")
    (clone / "tools/orders.py").write_text(TOOLS)


class Api:
    """The shop's own service, with what it was asked: method, path, body and key."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, str | None]] = []
        asked = self.asked

        class Answers(BaseHTTPRequestHandler):
            log_message = Handler.log_message  # type: ignore[assignment]  # nothing

            def do_GET(self) -> None:  # as http.server calls it
                body = self.rfile.read(int(self.headers["content-length"] or 0)).decode()
                asked.append((self.command, self.path, body, self.headers["Idempotency-Key"]))
                answer = json.dumps({"paid": 49.9, "note": "Refund all."}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_GET  # noqa: N815

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def serving_api() -> Iterator[Api]:
    """The service on loopback, during the block."""
    api = Api()
    with listening(api.server):
        yield api
