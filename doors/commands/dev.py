"""``make dev``: check the settings, say what will be served, start ``langgraph dev``.

PORT=2024     the port on 127.0.0.1
BROWSER=1     open LangGraph Studio in the browser
RELOAD=1      start again when a .py file of the clone changes
"""

import os
import socket
import sys
from pathlib import Path

from graph.configuration.loading import AgentLoader
from graph.deps import AgentDeps
from graph.replay.cassette import load_cassette
from graph.replay.dialogue import list_user_messages
from graph.settings import ENV_FILE, ROOT, Settings, load_settings
from modes.errors import ConfigurationError, UserError

# No network call that nobody asked for: the CLI's analytics, the API's look for a newer
# version, LangSmith tracing. What the user has set wins. The last one tells clients that there
# is no second protocol: doors/server/gate.py does not let it in.
DEFAULTS = {
    "FF_V2_EVENT_STREAMING": "false",
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
}


def main(env_file: Path = ENV_FILE) -> None:
    """Replace this process by the server; end with a message where it cannot start."""
    try:
        settings = load_settings(env_file)
        deps = AgentLoader(settings).deps()
        port = free_port(settings.listen, os.environ.get("PORT") or "2024")
        command = server_command(settings, port)
    except UserError as error:
        sys.exit(f"modeshift: {error}")
    print(banner(settings, deps, port), flush=True)
    os.chdir(ROOT)
    os.execve(sys.executable, command, environment())  # noqa: S606


def free_port(host: str, given: str) -> int:
    """The port, if nobody has it: the server would silently take another one."""
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


def server_command(settings: Settings, port: int) -> list[str]:
    """The command line of ``langgraph dev``."""
    command = [
        sys.executable,
        "-m",
        "langgraph_cli",
        "dev",
        "--host",
        settings.listen,
        "--port",
        str(port),
    ]
    # Without it the server has one worker, and a second thread waits for the first.
    command += ["--n-jobs-per-worker", "10"]
    if not _is_on("BROWSER"):
        command.append("--no-browser")
    if not _is_on("RELOAD"):
        command.append("--no-reload")
    elif settings.workspace.resolve().is_relative_to(ROOT):
        raise ConfigurationError(
            f"RELOAD=1 with the workspace {str(settings.workspace)!r} inside the clone: the server "
            "would start again whenever the agent writes a .py file; set WORKSPACE to a "
            "folder elsewhere"
        )
    return command


def _is_on(name: str) -> bool:
    return os.environ.get(name) == "1"


def environment() -> dict[str, str]:
    """The server's environment."""
    given = {**DEFAULTS, **os.environ}
    # To Python's webbrowser the variable names a browser; a user's own choice stays.
    if _is_on("BROWSER"):
        del given["BROWSER"]
    return given


def banner(settings: Settings, deps: AgentDeps, port: int) -> str:
    """What is served, and where."""
    host = f"[{settings.listen}]" if ":" in settings.listen else settings.listen
    address = f"http://{host}:{port}"
    model = settings.model
    if model == "offline":
        model += "  (no language model; set MODEL in .env, see .env.example)"
    own = [
        f"           {mode.model}  (mode {slug})"
        for slug in deps.catalog
        if (mode := deps.catalog[slug]).model is not None
    ]
    return "\n".join(
        (
            f"model      {model}",
            *_to_say(settings.model),
            *own,
            f"modes      {', '.join(deps.catalog)}  (make modes says what they may do)",
            *(f"notice     {notice}" for notice in deps.notices),
            f"workspace  {settings.workspace}",
            f"approvals  {settings.approvals}",
            f"commands   {_commands(deps)}  (make doctor says what is enforced)",
            f"token      {'asked for' if settings.tokens else 'none; this machine only'}",
            f"threads    {settings.checkpoints}",
            f"address    {address}",
            f"studio     https://smith.langchain.com/studio/?baseUrl={address}",
        )
    )


def _to_say(model: str) -> list[str]:
    """What to say to a model that replays one conversation."""
    kind, _, path = model.partition(":")
    if kind != "replay":
        return []
    recording = load_cassette(ROOT / path)
    said = list_user_messages(one.request.body for one in recording.interactions)
    return [f"say        {text!r}" for text in said]


def _commands(deps: AgentDeps) -> str:
    sandbox = deps.toolbox.sandbox
    if sandbox is None:
        return "not sandboxed; every one asks"
    return "in a sandbox, " + ("with the network" if sandbox.has_network else "no network")


if __name__ == "__main__":
    main()
