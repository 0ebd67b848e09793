"""The loop as you have changed it keeps what the engine promises."""

from graph.agent import build
from modeshift.testing import check_agent


def test_the_gates_hold_on_this_graph() -> None:
    check_agent(build)
