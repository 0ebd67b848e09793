"""The groups ``orders`` and ``refunds``: what the shop's API knows, and what it does."""

import os

import httpx
from modeshift.tools import Tool, ToolDeps, ToolFailedError, get_idempotency_key


def _ask(method: str, path: str, body: object = None) -> str:
    shop = os.environ.get("SHOP", "http://127.0.0.1:8800")
    headers = {"Idempotency-Key": get_idempotency_key() or ""}
    try:
        answer = httpx.request(method, shop + path, json=body, headers=headers, trust_env=False)
    except httpx.TransportError as error:
        raise ToolFailedError(f"the shop at {shop} does not answer; say so: {error}") from error
    if not answer.is_success:
        raise ToolFailedError(f"the shop says {answer.status_code}: {answer.text}")
    return answer.text


def find_order(order: str) -> str:
    """Look an order up: what was bought, paid and paid back."""
    return _ask("GET", f"/orders/{order}")


def send_note(order: str, text: str) -> str:
    """Write to the customer."""
    return _ask("POST", f"/orders/{order}/notes", {"text": text})


def refund(order: str, amount: float) -> str:
    """Pay money back."""
    return _ask("POST", f"/orders/{order}/refunds", {"amount": amount})


def order_tools(deps: ToolDeps) -> list[Tool]:
    """What asks nobody."""
    return [Tool.of(find_order, "outside-read", subject=("order",))]


def refund_tools(deps: ToolDeps) -> list[Tool]:
    """What always asks."""
    paying = Tool.of(refund, "outside", subject=("order", "amount"))
    return [paying, Tool.of(send_note, "outside")]
