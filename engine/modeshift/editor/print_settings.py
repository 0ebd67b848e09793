"""``make acp``: prints what to put into an editor's settings."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from modeshift.configuration.settings import load_settings
from modeshift.models.loading import load_model
from modeshift.modes.errors import ConfigurationError
from modeshift.project import find_root


def main() -> Iterator[str]:
    """The lines to print; raises ``UserError`` for what keeps the agent from starting."""
    settings = load_settings()
    for model in settings.choices:
        load_model(model)
    command = Path(sys.executable).with_name("modeshift-acp")
    if not command.exists():
        raise ConfigurationError(f"{command} does not exist; run `make clean`, then `make acp`")
    arguments = ["--project", str(find_root())]
    line = shlex.join([str(command), *arguments])
    server = {"command": str(command), "args": arguments, "env": {}}
    yield f"command    {line}"
    yield f'model      {settings.model}  (MODEL in .env, or in the editor\'s "env")'
    yield f"sessions   {settings.sessions}"
    yield "\nZed, in settings.json:"
    yield json.dumps({"agent_servers": {"Modeshift": {"type": "custom", **server}}}, indent=2)
    yield "\nJetBrains, in ~/.jetbrains/acp.json:"
    # Off by default there: the IDE's own MCP server, and those that its user has configured.
    mcp = {"use_idea_mcp": True, "use_custom_mcp": True}
    jetbrains = {"default_mcp_settings": mcp, "agent_servers": {"Modeshift": server}}
    yield json.dumps(jetbrains, indent=2)
    yield f"\nToad:  toad acp {shlex.quote(line)}"
    yield f"acpx:  acpx --agent {shlex.quote(line)}"
