"""``make serve``: check the settings, and serve the agent with Aegra, in several processes."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from modeshift import aegra
from modeshift.commands.dev import DEFAULTS, check_port, format_address
from modeshift.graph.configuration.loading import AgentLoader
from modeshift.graph.configuration.settings import load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.project import find_root


def main(*, port: str | None = None, workers: str | None = None) -> Iterator[str]:
    """Serve until the process is ended; raises ``UserError`` where it cannot start."""
    settings = load_settings()
    if find_spec("aegra_api") is None:
        raise ConfigurationError(
            "Aegra is not installed here: run make serve, which makes .venv-serve for it"
        )
    url = settings.database_url.get_secret_value()
    if not url:
        raise ConfigurationError(
            "make serve keeps threads in Postgres: set DATABASE_URL, for example "
            "DATABASE_URL=postgresql://user:password@127.0.0.1/modeshift"
        )
    AgentLoader(settings).deps()
    number, count = check_port(settings.listen, port or "2024"), _check_count(workers or "1")
    os.environ.update(
        {
            **{name: os.environ.get(name, value) for name, value in DEFAULTS.items()},
            "LOG_LEVEL": os.environ.get("LOG_LEVEL", "WARNING"),
            "DATABASE_URL": url,
            "ENV_MODE": "PRODUCTION",  # a line of JSON for what it logs
            "AEGRA_CONFIG": str(Path(aegra.__file__).with_name("aegra.json")),
            "AEGRA_CHECKPOINT_DURABILITY": "sync",
            "REDIS_BROKER_ENABLED": "false",
        }
    )
    os.chdir(find_root())
    import uvicorn  # noqa: PLC0415  # Aegra's
    from aegra_api.core.migrations import run_migrations  # noqa: PLC0415  # reads the environment

    from modeshift.aegra import server  # noqa: F401, PLC0415  # what is wrong with it is said once

    run_migrations()
    print(f"address    {format_address(settings.listen, number)}  ({count} processes)", flush=True)
    uvicorn.run(
        "modeshift.aegra.server:app",
        host=settings.listen,
        port=number,
        workers=count,
        log_level=os.environ["LOG_LEVEL"].lower(),
    )
    return iter(())


def _check_count(given: str) -> int:
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    raise ConfigurationError(f"WORKERS={given!r} is no number of processes; give 1 or more")
