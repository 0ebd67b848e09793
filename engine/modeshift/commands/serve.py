"""``make serve``: check the settings, and serve the agent with Aegra, in several processes."""

import asyncio
import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from modeshift import aegra
from modeshift.commands.dev import DEFAULTS, check_port, format_address, print_when_up
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import Settings, load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.project import find_root, load_project

MAX_CONNECTIONS = 80
"""Connections of all processes: Postgres takes 100 by default, of which 3 are a superuser's."""
OURS = 8
"""Connections of one process beside Aegra's: 4 each of the journal and the server."""


def main(*, port: str | None = None, workers: str | None = None) -> Iterator[str]:
    """Serve until the process is ended; raises ``UserError`` where it cannot start."""
    settings = load_settings()
    if not settings.database_url.get_secret_value():
        raise ConfigurationError(
            "make serve keeps threads in Postgres: set DATABASE_URL, for example "
            "DATABASE_URL=postgresql://user:password@127.0.0.1/modeshift"
        )
    given = workers or os.environ.get("WORKERS") or "1"
    if not (given.isascii() and given.isdigit() and int(given) > 0):
        raise ConfigurationError(f"WORKERS={given!r} is no number of processes; give 1 or more")
    count = int(given)
    number = check_port(settings.listen, port)
    is_check = bool(os.environ.get("ONLY_CHECK"))  # of make, before it sets up the environment
    if not is_check or find_spec("psycopg"):  # which has it whatever the clone has
        asyncio.run(settings.open_database().check())
    if is_check:
        return iter(())
    if find_spec("aegra_api") is None:
        raise ConfigurationError(
            "Aegra is not installed here: run make serve, which makes .venv-serve for it"
        )
    load_project().build(AgentLoader(settings).deps())
    os.chdir(find_root())
    os.environ.update(_build_environment(settings, count))
    import uvicorn  # noqa: PLC0415  # of an environment of its own, as the next

    from modeshift.aegra.start import load_app  # noqa: PLC0415

    load_app()  # what is wrong is said once
    from modeshift.aegra.claims import prepare_database  # noqa: PLC0415

    asyncio.run(prepare_database())
    address = format_address(settings.listen, number)
    is_json, told = settings.log_format == "json", f"{address}, {count} processes"
    line = json.dumps({"event": f"serves at {told}"}) if is_json else f"address    {told}"
    print_when_up(address, line)
    level = os.environ["LOG_LEVEL"].lower()
    uvicorn.run(
        "modeshift.aegra.start:load_app",
        factory=True, log_config=None,  # load_app sets the log up
        host=settings.listen, port=number, workers=count, log_level=level,
        timeout_worker_healthcheck=60,  # a busy machine is not a dead process
    )  # fmt: skip
    return iter(())


def _build_environment(settings: Settings, processes: int) -> dict[str, str]:
    defaults = {**DEFAULTS, "LOG_LEVEL": "WARNING", **divide_connections(processes)}
    return {
        **{name: os.environ.get(name, value) for name, value in defaults.items()},
        "DATABASE_URL": settings.database_url.get_secret_value(),
        "ENV_MODE": "PRODUCTION",  # a line of JSON for what it logs
        "AEGRA_CONFIG": str(Path(aegra.__file__).with_name("aegra.json")),
        "AEGRA_CHECKPOINT_DURABILITY": "sync",
        "REDIS_BROKER_ENABLED": "false",
    }


def divide_connections(processes: int) -> dict[str, str]:
    """How many connections Aegra's pools get in each of so many processes."""
    most = min(max(MAX_CONNECTIONS // processes - OURS, 4), 50)
    for_checkpoints = most * 2 // 5
    return {
        "SQLALCHEMY_POOL_SIZE": str(most - for_checkpoints),
        "SQLALCHEMY_MAX_OVERFLOW": "0",
        "LANGGRAPH_MIN_POOL_SIZE": "1",
        "LANGGRAPH_MAX_POOL_SIZE": str(for_checkpoints),
    }
