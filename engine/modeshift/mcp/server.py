"""``Server``: an MCP server as a person configured it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from modeshift.mcp.described import ToolDescription

DEFAULT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Server:
    """Either ``command`` (stdio) or ``url`` (streamable HTTP); its ``repr`` shows no secrets.

    All values are final: whoever makes it has resolved ``${VAR}`` and left out disabled servers.
    """

    name: str
    origin: Literal["user", "workspace", "editor"]
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All that the process gets beside PATH, HOME, LANG and the like."""
    cwd: str | None = None
    """Absolute; None for the workspace if it is the workspace's server, else for ``/``."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    disabled_tools: tuple[str, ...] = ()
    """Names as the server lists them; never bound."""
    timeout: float = DEFAULT_SECONDS
    """Seconds: for the start with the list of tools, and for each call."""
    network: bool = False
    """Whether a process in the sandbox may reach the network; ``url`` is reached in any case."""
    writes: bool = False
    """Whether a process in the sandbox may change the workspace, but for what no command may."""
    pinned: Mapping[str, ToolDescription] | None = None
    """The tools that a person has accepted, by name: one that differs (``find_changes`` says how)
    or is not among them is not bound. None where the server is trusted as configured."""

    def identify(self) -> str:
        """What it is, without the values of secrets: an approval holds for this one only."""
        told = asdict(self) | {"env": sorted(self.env), "headers": sorted(self.headers)}
        return json.dumps(told, sort_keys=True)
