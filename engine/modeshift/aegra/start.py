"""``load_app``: what uvicorn calls in each process of ``make serve``."""

from aegra_api.utils.setup_logging import setup_logging
from fastapi import FastAPI

from modeshift.configuration.settings import load_settings
from modeshift.server.logs import shorten_log


def load_app() -> FastAPI:
    """Aegra behind the dev server's gate; its log is set up first, as its modules write into it."""
    setup_logging()
    shorten_log(has_content=load_settings().log_format != "json")
    from modeshift.aegra.server import app  # noqa: PLC0415  # as above

    return app
