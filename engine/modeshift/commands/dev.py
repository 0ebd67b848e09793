"""``make dev``: check the settings, start ``langgraph dev``, say where it is once it answers."""

import asyncio
import fcntl
import json
import logging
import os
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TextIO

from modeshift.configuration.databases import make_private
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.settings import Settings, load_settings
from modeshift.modes.errors import ConfigurationError
from modeshift.project import GRAPH, MARK, find_root, load_project
from modeshift.storage.threads import check_database
from modeshift.threads.deps import AgentDeps

# No network call that nobody asked for: the CLI's analytics, the API's look for a newer
# version, LangSmith tracing. What the user has set wins. The last one tells clients that there
# is no second protocol: modeshift/server/gate.py does not let it in.
DEFAULTS = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
    "FF_V2_EVENT_STREAMING": "false",
}


def main(
    *,
    port: str | None = None,
    browser: bool = False,
    verbose: bool = False,
    env_file: Path | None = None,
) -> Iterator[str]:
    """Serve until the process is ended; raises ``UserError`` where it cannot start."""
    settings = load_settings(env_file)
    deps = AgentLoader(settings).deps()
    load_project().build(deps)  # what the graph lacks is said here, and not to each run
    if f'"{GRAPH}"' not in (find_root() / MARK).read_text(encoding="utf-8"):
        raise ConfigurationError(
            f"{MARK} names no graph {GRAPH!r}: the page, make chat and programs would not find it"
        )
    # Each clone lists its own threads: in Postgres nobody overwrites another's.
    data = nullcontext() if settings.has_postgres else _lock_data(settings.checkpoints)
    asyncio.run(check_database(settings.open_database()))
    here = f"process {os.getpid()}, clone {find_root()}, workspace {settings.workspace}"
    with (
        take_lock(get_lock_file(), "this clone", "stop that one first") as clone_lock,
        data as data_lock,
    ):
        number = check_port(settings.listen, port)
        address = format_address(settings.listen, number)
        for lock in filter(None, (clone_lock, data_lock)):
            lock.truncate(0)
            lock.write(f"{address}, {here}")
            lock.flush()
        is_json = settings.log_format == "json"
        text = banner(settings, deps, address)
        if is_json:
            text = json.dumps({"event": f"serves at {address}"})
        print_when_up(address, text, browser=browser)
        if not is_json:
            print("Starting the server ...", flush=True)
        serve_here(settings.listen, number, verbose=verbose, is_json=is_json)
    return iter(())


def _lock_data(file: Path) -> TextIO:
    make_private(file)
    return take_lock(Path(f"{file}.lock"), file, "stop it, or set CHECKPOINTS here")


def get_lock_file() -> Path:
    """The file that the clone's server locks while it runs."""
    return find_root() / ".langgraph_api" / "server.lock"


def take_lock(file: Path, place: object, advice: str) -> TextIO:
    """Lock the file for the server that has ``place``, until the result is closed.

    Raises ``ConfigurationError`` if another server has the lock, or it cannot be written.
    """
    make_private(file)
    lock = file.open("r+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(
            f"{place} has a server already: {lock.read()}; {advice}: two would overwrite each "
            "other's threads"
        ) from None
    return lock


def find_server(settings: Settings) -> str | None:
    """The address of this clone's server, if one runs and works in the same workspace."""
    with suppress(FileNotFoundError), get_lock_file().open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            address, _, rest = lock.read().partition(", process ")
            return address if rest.endswith(f", workspace {settings.workspace}") else None
    return None


def check_port(host: str, given: str | None) -> int:
    """The port as a number; if none is given, that of ``PORT``, which ``.env`` may set.

    Raises ``ConfigurationError`` if it is taken: the server would silently use another one.
    """
    given = given or os.environ.get("PORT") or "2024"
    try:
        port = int(given)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (ValueError, OverflowError):
        raise ConfigurationError(f"PORT={given!r} is no port; give a number up to 65535") from None
    except OSError as error:
        raise ConfigurationError(
            f"PORT={given!r} cannot be used: {error.strerror}; set PORT to another one"
        ) from error
    return port


def serve_here(host: str, port: int, *, verbose: bool, is_json: bool) -> None:
    """Run ``langgraph dev`` in this process, which has its imports already."""
    level, color = "INFO" if verbose or is_json else "WARNING", str(sys.stdout.isatty())
    defaults = {**DEFAULTS, "LOG_LEVEL": level, "LOG_COLOR": color, "LOG_JSON": str(is_json)}
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    logging.basicConfig(level=os.environ["LOG_LEVEL"].upper())
    if is_json:
        logging.getLogger("langgraph_api.cli").setLevel(logging.WARNING)  # a banner
    os.chdir(find_root())
    # They read the environment; the first one configures structlog.
    import langgraph_api.logging  # noqa: F401, PLC0415
    import structlog  # noqa: PLC0415
    from langgraph_cli.cli import cli  # noqa: PLC0415

    from modeshift.workarounds.structlog import LevelFirst  # noqa: PLC0415

    structlog.configure(wrapper_class=LevelFirst)

    command = ["dev", "--host", host, "--port", str(port)]
    # No limit to speak of: a run that waits for a command would hold up other threads.
    command += ["--n-jobs-per-worker", "1000", "--no-browser", "--no-reload"]
    cli(command)


def print_when_up(address: str, text: str, *, browser: bool = False) -> None:
    """Print the text as soon as the server answers, below what it has logged, and open the page."""
    threading.Thread(target=_await_and_print, args=(address, text, browser), daemon=True).start()


def _await_and_print(address: str, text: str, browser: bool) -> None:
    while True:
        # Not by httpx: it makes an SSL context, of a class that the server's imports replace.
        connection = HTTPConnection(address.removeprefix("http://"), timeout=5)
        try:
            connection.request("GET", "/ok", headers={"Host": "localhost"})
            connection.getresponse()
            break
        except (OSError, HTTPException):
            time.sleep(0.1)
        finally:
            connection.close()
    print(text if text.startswith("{") else f"\n{text}\n", flush=True)
    if browser:
        if os.environ.get("BROWSER") == "1":  # of make, where webbrowser expects a program
            del os.environ["BROWSER"]
        webbrowser.open(address)


def banner(settings: Settings, deps: AgentDeps, address: str) -> str:
    """The text that says what is served, and where."""
    model = settings.model
    if model == "offline":
        model += "  (no language model; set MODEL in .env, see .env.example)"
    own = [
        f"           {mode.model}  (mode {slug})"
        for slug in deps.catalog
        if (mode := deps.catalog[slug]).model is not None
    ]
    shared, each = settings.workspaces, settings.workspaces_per
    place = f"{shared}, one for each {each}" if shared else settings.workspace
    has_workspace, doctor = deps.toolbox.has_workspace, "make doctor says what is enforced"
    commands = "not sandboxed; every one asks"
    if (sandbox := deps.toolbox.sandbox) is not None:
        commands = f"in a sandbox, {'with the' if sandbox.has_network else 'no'} network"
    return "\n".join(
        (
            f"model      {model}",
            *own,
            f"modes      {', '.join(deps.catalog)}  (make modes says what they may do)",
            *(f"notice     {notice}" for notice in deps.notices),
            *([f"workspace  {place}"] if has_workspace else []),
            f"approvals  {settings.approvals}",
            *([f"commands   {commands}  ({doctor})"] if has_workspace else []),
            f"token      {'asked for' if settings.tokens else 'none; this machine only'}",
            f"threads    {settings.open_database().name}",
            f"studio     https://smith.langchain.com/studio/?baseUrl={address}",
            f"address    {address}  (open it in a browser; Ctrl-C stops the server)",
        )
    )


def format_address(host: str, port: int) -> str:
    """The address at which this machine reaches a server that listens there."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # all addresses
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
