"""The routes of our own beside those of LangGraph's dev server, or of Aegra."""

from modeshift.server import markdown, operations, questions, thread_modes

ROUTES = (
    *thread_modes.ROUTES,
    *questions.ROUTES,
    *markdown.ROUTES,
    *operations.ROUTES,
)
