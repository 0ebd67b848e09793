"""``make acp``: print the command line to put in an editor's settings."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from graph.models.loading import load_model
from graph.settings import load_settings
from modes.errors import ConfigurationError

NAME = "Modeshift"


def main() -> Iterator[str]:
    """The command, and a snippet of settings; raises ``UserError`` where it would not start."""
    settings = load_settings()
    for model in settings.choices:
        load_model(model)
    command = Path(sys.executable).with_name("modeshift-acp")
    if not command.exists():
        raise ConfigurationError(f"{command} is not there; run `make clean`, then `make acp`")
    server = {"command": str(command), "args": [], "env": {}}
    yield f"command    {command}"
    yield f'model      {settings.model}  (MODEL in .env, or in the editor\'s "env")'
    yield f"sessions   {settings.sessions}"
    yield ""
    yield "Zed, in settings.json:"
    yield json.dumps({"agent_servers": {NAME: {"type": "custom", **server}}}, indent=2)
    yield ""
    yield "JetBrains, in ~/.jetbrains/acp.json:"
    yield json.dumps({"agent_servers": {NAME: server}}, indent=2)
    yield ""
    yield f"Toad:  toad acp {command}"
    yield f"acpx:  acpx --agent {command}"
