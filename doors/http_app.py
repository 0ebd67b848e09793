"""The app that ``langgraph.json`` mounts around the dev server's own routes."""

from starlette.applications import Starlette
from starlette.middleware import Middleware

from doors.gate import Gate
from doors.one_answer import OneAnswer
from graph.settings import load_settings

_settings = load_settings()
app = Starlette(
    middleware=[
        Middleware(Gate, origins=_settings.origins, has_token=bool(_settings.tokens)),
        Middleware(OneAnswer),
    ]
)
