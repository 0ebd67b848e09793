"""``ToolSpec``: what the rules must know about a tool, and nothing more."""

from dataclasses import dataclass

from modeshift.modes.effects import Effect


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of an MCP server, in the server's own words."""

    server: str
    """As the user named it."""
    name: str
    is_read_only: bool = False
    """Its ``readOnlyHint``: it decides in which modes the tool is, never that a call runs."""
    host: str | None = None
    """Where it is reached; None for a program."""
    digest: str = ""
    """Of its description, schema and hints: an approval is for these."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the verdict sees it."""

    name: str
    effect: Effect
    group: str | None = None
    """The tool group that a mode needs; None for a tool that every mode has."""
    paths: tuple[str, ...] = ()
    """The arguments that name the files which the call reads or changes, all of them."""
    reads_below: bool = False
    """Whether a path may be a folder, of which the call reads what is in it."""
    command: str | None = None
    """The argument that is the command line."""
    url: str | None = None
    """The argument that is the address which the call fetches."""
    sandboxed: bool = False
    """Whether the operating system keeps what it runs from doing harm."""
    served: ServerTool | None = None
    """For a tool of an MCP server."""

    @property
    def resolved(self) -> tuple[str, ...]:
        """The arguments that are judged, and run, as what they resolve to."""
        return self.paths if self.url is None else (*self.paths, self.url)

    @property
    def takes_patterns(self) -> bool:
        """Whether a permission can be for some calls of the tool and not for others."""
        return bool(self.paths or self.command or self.url)
