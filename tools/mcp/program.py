"""The program of a stdio server: its environment, its sandbox, and that it ends with the agent."""

import os
import shlex
import sys
from pathlib import Path

from tools.mcp.server import Server
from tools.processes.environment import build_environment
from tools.processes.process import Program
from tools.processes.sandboxes import Sandbox, Service
from tools.workspace.workspace import Workspace

# The kernel ends it with the thread that has started it, which lasts as long as the agent.
_LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""


def build_program(server: Server, workspace: Workspace, sandbox: Sandbox | None) -> Program:
    """What to start, in the sandbox if there is one. Blocks; raises ``OSError``."""
    assert server.command is not None
    command = [server.command, *server.args]
    # ``npx`` and ``python -m`` run what they find where they start: in a workspace that nobody has
    # trusted its own code, with the secrets of the user's entry.
    default = workspace.root if server.origin == "workspace" else "/"
    folder = Path(server.cwd or default)
    if sandbox is not None:
        line = f"exec {shlex.join(command)}"
        service = Service(line, folder, server.env, server.network, server.writes)
        return sandbox.build_program(workspace, service)
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
    return Program(command, {**build_environment(), **server.env}, str(folder))
