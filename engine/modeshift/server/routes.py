"""``ROUTES``: our routes beside LangGraph's or Aegra's, for the gate, the apps and OpenAPI."""

import logging
from collections.abc import Iterator

from starlette.routing import Route

from modeshift import parts
from modeshift.modes.errors import ConfigurationError
from modeshift.server import markdown, operations, questions, thread_modes


def _list_others() -> Iterator[Route]:
    for entry in parts.list_parts(parts.ROUTES):
        try:
            yield from parts.load_part(entry)
        except ConfigurationError as error:
            logging.getLogger("modeshift").warning(error)


ROUTES = (
    *thread_modes.ROUTES,
    *questions.ROUTES,
    *markdown.ROUTES,
    *operations.ROUTES,
    *_list_others(),
)
