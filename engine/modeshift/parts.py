"""Parts that entry points offer, of this distribution and of others: read once in a process.

An entry point names the extra that it needs: ``module:name [extra]``. Without that extra the part
is not there: nothing of it is imported. One that does not load is missing, and nothing else is.
"""

from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from packaging.requirements import Requirement

from modeshift.modes.errors import ConfigurationError
from modeshift.modes.plain_text import to_one_line
from modeshift.project import say_how_to_add

COMMANDS = "modeshift.commands"
"""The group of commands: each is a ``main`` for ``python -m modeshift``."""
PROGRAMS = "modeshift.programs"
"""The group of functions that scripts run."""
SANDBOXES = "modeshift.sandboxes"
"""The group of functions that return a sandbox, or say why there is none."""
SERVER_POOLS = "modeshift.server_pools"
"""The group of classes that start servers; ``mcp`` starts MCP servers."""
ROUTES = "modeshift.routes"
"""The group of lists of Starlette's routes, which both servers have and their gate lets in."""
GROUPS = (COMMANDS, PROGRAMS, SANDBOXES, SERVER_POOLS, ROUTES)
OURS = "modeshift"


@cache
def _read_entries() -> dict[str, list[EntryPoint]]:
    everything = entry_points()  # it opens a file of each distribution that is installed
    return {group: list(everything.select(group=group)) for group in GROUPS}


def list_parts(group: str) -> list[EntryPoint]:
    """The entry points of a group. Somebody chose to install those of others: they come first."""
    entries = _read_entries()[group]
    return sorted(entries, key=lambda entry: (_name_source(entry) == OURS, entry.name))


def load(group: str, name: str) -> Any:
    """Load the first entry point of this name that can be; raises ``ConfigurationError``."""
    problem = ConfigurationError(
        f"{name} is not among the entry points of {group}: install the engine again; in the "
        "clone: make clean, then make test"
    )
    for entry in list_parts(group):
        if entry.name == name:
            try:
                return load_part(entry)
            except ConfigurationError as error:
                problem = error
    raise problem


def load_part(entry: EntryPoint) -> Any:
    """Load an entry point; raises ``ConfigurationError``, one line that says how to get it."""
    source = _name_source(entry)
    for extra in entry.extras:
        if not _is_installed(source, extra):
            how = say_how_to_add(extra) if source == OURS else f"pip install '{source}[{extra}]'"
            raise ConfigurationError(f"{entry.name} is not installed: {how}")
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # whatever an import does, it costs this part alone
        why = to_one_line(f"{type(error).__name__}: {error}", 300)
        raise ConfigurationError(
            f"{entry.name} of {source} ({entry.group}: {entry.value}) does not load: {why}"
        ) from error


def is_there(group: str, name: str) -> bool:
    """Whether the extras of such a part are installed; imports nothing."""
    return any(
        all(_is_installed(_name_source(entry), extra) for extra in entry.extras)
        for entry in list_parts(group)
        if entry.name == name
    )


def _name_source(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else OURS


@cache
def _is_installed(source: str, extra: str) -> bool:
    """Whether everything is installed that the distribution's extra adds to it."""
    for requirement in map(Requirement, distribution(source).requires or ()):
        marker = requirement.marker
        if (
            marker is None
            or marker.evaluate({"extra": ""})
            or not marker.evaluate({"extra": extra})
        ):
            continue
        try:
            distribution(requirement.name)
        except PackageNotFoundError:
            return False
        if not all(_is_installed(requirement.name, inner) for inner in requirement.extras):
            return False
    return True
