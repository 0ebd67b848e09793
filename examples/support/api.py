"""The shop that the agent works for: orders over HTTP, kept in memory. ``python3 api.py``."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any


class Shop(ThreadingHTTPServer):
    """Serves this machine alone."""

    def __init__(self, port: int = 8800) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.orders: dict[str, dict[str, Any]] = {
            "A-17": {"item": "kettle", "paid": 49.9, "refunded": 0, "notes": []},
            "A-18": {"item": "coffee machine", "paid": 120, "refunded": 0, "notes": []},
        }
        self._lock, self._done = Lock(), dict[str, tuple[int, object]]()

    def answer(self, path: str, key: str | None, body: dict[str, Any]) -> tuple[int, object]:
        """Look up; or pay back or note, once for each key: a second time it has the same answer."""
        number, *change = path.removeprefix("/orders/").split("/")
        with self._lock:
            if number not in self.orders:
                return 404, f"there is no order {number}"
            if not change:
                return 200, self.orders[number]
            if not key:
                return 400, "an Idempotency-Key is missing"
            if key not in self._done:
                self._done[key] = self._change(self.orders[number], body)
            return self._done[key]

    def _change(self, order: dict[str, Any], body: dict[str, Any]) -> tuple[int, object]:
        if text := body.get("text"):
            order["notes"].append(text)
        elif 0 < body["amount"] <= order["paid"] - order["refunded"]:
            order["refunded"] += body["amount"]
        else:
            return 409, "that is more than was paid"
        return 200, dict(order)


class _Handler(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
        status, answer = self.server.answer(self.path, self.headers["Idempotency-Key"], body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    do_POST = do_GET  # noqa: N815


if __name__ == "__main__":
    Shop().serve_forever()
