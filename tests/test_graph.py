"""The loop, modes and tools as you have changed them keep what the engine promises."""

from modeshift.testing import check_agent, check_imports, check_modes, check_server

from graph.agent import build


def test_the_gates_hold_on_this_graph() -> None:
    check_agent(build)


def test_each_mode_allows_what_its_file_says() -> None:
    check_modes()


def test_of_the_engine_only_what_stays_is_used() -> None:
    check_imports()


async def test_the_server_asks_before_a_switch() -> None:
    await check_server()
