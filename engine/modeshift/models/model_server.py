"""``ask_server``: what the server behind a model says of it, such as how much it reads.

llama.cpp says it at ``/props``, vLLM at ``/v1/models``, Ollama at ``/api/show``.
"""

import os
import re
from dataclasses import dataclass
from typing import Any

import httpx

from modeshift.models.providers import PROVIDERS, is_local
from modeshift.modes.plain_data import JsonObject

SECONDS = 3.0
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.M)


@dataclass(frozen=True)
class ModelServer:
    """What a server says of its model; None for what it does not say."""

    window: int | None = None
    """How many tokens a request and its answer may have together."""
    has_tools: bool | None = None
    """Whether the model's chat template shows the tools: llama.cpp leaves them out otherwise."""


def ask_server(name: str) -> ModelServer | None:
    """What the server of ``provider:name`` says of the model; blocks.

    None if it cannot be asked now: it is not there, or still loads the model. A provider's own
    servers are not asked.
    """
    provider, _, model = name.partition(":")
    if not is_local(provider):
        return ModelServer()
    known = PROVIDERS[provider]
    address = (known.address() or known.default_address).rstrip("/")
    key = os.environ.get(known.key or "")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(timeout=SECONDS, headers=headers) as client:
            if provider == "ollama":
                address = address if "://" in address else f"http://{address}"
                return _ask_ollama(client, address, model)
            return _ask_chat(client, address, model)
    except httpx.TransportError:
        return None


def _ask_chat(client: httpx.Client, address: str, model: str) -> ModelServer:
    props = _get(client, "GET", f"{address.removesuffix('/v1')}/props", params={"model": model})
    match props:
        case {"default_generation_settings": {"n_ctx": int(window)}}:
            caps = props.get("chat_template_caps") or {}
            return ModelServer(window, caps.get("supports_tools"))
    for info in _get(client, "GET", f"{address}/models").get("data") or ():
        match info:
            case {"id": str(id), "max_model_len": int(window)} if id == model:
                return ModelServer(window)
    return ModelServer()


def _ask_ollama(client: httpx.Client, address: str, model: str) -> ModelServer:
    """The window is ``num_ctx``, not what the model could read: Ollama silently drops the rest."""
    shown = _get(client, "POST", f"{address}/api/show", json={"model": model})
    size = _NUM_CTX.search(str(shown.get("parameters")))
    has_tools = "tools" in shown["capabilities"] if "capabilities" in shown else None
    return ModelServer(int(size[1]) if size else None, has_tools)


def _get(client: httpx.Client, method: str, url: str, **more: Any) -> JsonObject:
    """The answer's JSON object; empty for another answer. Raises ``httpx.TransportError``."""
    response = client.request(method, url, **more)
    if response.is_server_error:
        raise httpx.TransportError(f"{url} answers {response.status_code}")
    try:
        body = response.json() if response.is_success else None
    except ValueError:  # such as a web page
        body = None
    return body if isinstance(body, dict) else {}
