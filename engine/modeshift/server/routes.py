"""``is_known``: the routes that the gate lets through; all others are refused.

The server has more routes than these, some of which ask for no token (``/internal/...``,
``/deploy``, ``/metrics``), and each version may add to them.
"""

import re

_FIELDS = {
    # Ids only: a route "/threads/something" that a later version adds is no thread. And in one form
    # only: what is set in a thread is found by its id, and a limit must not be kept under another.
    "id": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "name": r"[A-Za-z0-9_-]+",
    "file": r"[a-z]+\.(?:js|css|svg)",
    "namespace": r"[A-Za-z0-9_:|-]+",
}
_ROUTES = {
    "/": "GET",
    "/ok": "GET",
    "/info": "GET",
    "/docs": "GET",
    "/openapi.json": "GET",
    "/app": "GET",
    "/app/{file}": "GET",
    "/modes": "GET",
    "/modeshift/chart": "GET",
    "/modeshift/markdown": "POST",
    "/modeshift/threads": "POST",
    "/threads/{id}/mode": "GET PATCH",
    "/threads/{id}/files": "GET",
    "/threads/{id}/question": "GET",
    "/assistants": "POST",
    "/assistants/search": "POST",
    "/assistants/count": "POST",
    "/assistants/{id}": "GET PATCH DELETE",
    "/assistants/{id}/latest": "POST",
    "/assistants/{id}/versions": "POST",
    "/assistants/{name}/graph": "GET",
    "/assistants/{id}/schemas": "GET",
    "/assistants/{id}/subgraphs": "GET",
    "/assistants/{id}/subgraphs/{namespace}": "GET",
    "/threads": "POST",
    "/threads/search": "POST",
    "/threads/count": "POST",
    "/threads/prune": "POST",
    "/threads/{id}": "GET PATCH DELETE",
    "/threads/{id}/copy": "POST",
    "/threads/{id}/state": "GET POST",
    "/threads/{id}/state/{id}": "GET",
    "/threads/{id}/state/checkpoint": "POST",
    "/threads/{id}/history": "GET POST",
    "/threads/{id}/stream": "GET",
    "/threads/{id}/runs": "GET POST",
    "/threads/{id}/runs/stream": "POST",
    "/threads/{id}/runs/wait": "POST",
    "/threads/{id}/runs/crons": "POST",
    "/threads/{id}/runs/{id}": "GET DELETE",
    "/threads/{id}/runs/{id}/join": "GET",
    "/threads/{id}/runs/{id}/stream": "GET",
    "/threads/{id}/runs/{id}/cancel": "POST",
    "/runs": "POST",
    "/runs/stream": "POST",
    "/runs/wait": "POST",
    "/runs/batch": "POST",
    "/runs/cancel": "POST",
    "/runs/crons": "POST",
    "/runs/crons/search": "POST",
    "/runs/crons/count": "POST",
    "/runs/crons/{id}": "GET PATCH DELETE",
    "/store/items": "GET PUT DELETE",
    "/store/items/search": "POST",
    "/store/namespaces": "POST",
}


def _compile(route: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", route)
    return re.compile(
        "".join(_FIELDS[part] if place % 2 else re.escape(part) for place, part in enumerate(parts))
    )


_KNOWN = [(_compile(route), frozenset(methods.split())) for route, methods in _ROUTES.items()]


def is_known(method: str, path: str) -> bool:
    """Whether the path, as the server's router will see it, is on the list for the method.

    All of it must match: the router's own patterns stop before a final line break.
    """
    methods = {name for pattern, names in _KNOWN if pattern.fullmatch(path) for name in names}
    if method == "OPTIONS":  # a browser asks this before it sends another page's request
        return bool(methods)
    return ("GET" if method == "HEAD" else method) in methods
