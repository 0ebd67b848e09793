"""``make doctor``: what is enforced on this machine, what is not, and how to get the rest."""

import asyncio
import os
from collections.abc import Iterator
from shlex import quote

from modeshift.configuration.databases import make_private
from modeshift.configuration.loading import AgentLoader, choose_sandbox
from modeshift.configuration.settings import Settings, load_settings
from modeshift.modes.errors import ConfigurationError, UserError
from modeshift.parts import COMMANDS, GROUPS, is_there, list_parts, load_part
from modeshift.project import find_root
from modeshift.storage.threads import check_database
from modeshift.threads.deps import AgentDeps
from modeshift.tools.processes.process import MAX_SECONDS
from modeshift.tools.processes.sandboxes import NoSandbox
from modeshift.tools.workspace.repository import ALTERNATES, is_shared
from modeshift.tools.workspace.ripgrep import can_confine, find_version
from modeshift.turns.compaction import describe_window

_OPEN = "they can read the agent's own environment with its keys, in /proc"
YES, NO, PART = "yes", "no", "partly"


def main() -> Iterator[str]:
    """The report; raises ``UserError``."""
    settings = load_settings()
    deps = AgentLoader(settings).deps()
    has_workspace = deps.toolbox.has_workspace
    if has_workspace:
        yield f"workspace  {settings.workspace}"
    yield f"approvals  {settings.approvals}"
    yield ""
    if has_workspace:
        yield from _check_files()
    yield from _check_writing(settings, has_workspace=has_workspace)
    if has_workspace:
        yield from _check_repositories(settings)
        yield from _check_commands(settings)
        yield from _check_modes(deps)
    yield from _check_models(deps)
    if is_there(COMMANDS, "dev"):
        yield from _check_server(settings)
    yield from _check_parts()


def _say(kind: str, text: str, *more: str) -> str:
    return "\n".join([f"{kind:<7} {text}", *(f"        {line}" for line in more)])


def _check_files() -> Iterator[str]:
    yield _say(YES, "files are opened below the workspace, no link followed")
    version = find_version()
    if version:
        yield _say(YES, f"searches take linear time: {version}")
        if can_confine():
            yield _say(YES, "  the kernel confines rg to the folder it searches (Landlock)")
        else:
            yield _say(PART, "  slowly: there is no Landlock here, so every file is opened for rg")
    else:
        yield _say(
            NO, "search_files: the rg program is missing; run `make clean`, then `make test`"
        )


def _check_writing(settings: Settings, *, has_workspace: bool) -> Iterator[str]:
    folders = [("the clone: make dev does not start", find_root())]
    if has_workspace:
        folders.insert(0, ("the workspace: the agent can only read", settings.workspace))
    for name, folder in folders:
        if not os.access(folder, os.W_OK):
            yield _say(NO, f"{name}, since {str(folder)!r} cannot be written")
    if settings.has_postgres:
        try:
            asyncio.run(check_database(settings.open_database()))
        except UserError as error:
            yield _say(NO, f"DATABASE_URL: {error}")
        return
    for setting in ("checkpoints", "sessions"):
        try:
            make_private(getattr(settings, setting))
        except ConfigurationError as error:
            yield _say(NO, f"{setting.upper()}: {error}")


def _check_repositories(settings: Settings) -> Iterator[str]:
    below = () if settings.workspaces is None else settings.workspaces.glob("*/[!.]*")
    for folder in (settings.workspace, *sorted(below)):
        if is_shared(folder):
            own = f"git repack -adq && rm -f {ALTERNATES} && cp -Rp .git .git.own"
            mend = f"cd {quote(str(folder))} && {own} && rm -rf .git && mv .git.own .git"
            text = f"{folder}: another repository has the same files in its .git"
            yield _say(NO, text, f"while nobody works there: {mend}")


def _check_commands(settings: Settings) -> Iterator[str]:
    limits = f"{settings.command_memory} MiB, {settings.command_processes} processes"
    yield _say(YES, f"commands are limited: {limits}, {MAX_SECONDS} s")
    sandbox = choose_sandbox(settings)
    if isinstance(sandbox, NoSandbox):
        text = f"commands run without a sandbox, and every one asks: {sandbox.problem}"
        yield _say(NO, text, *sandbox.remedies, _OPEN)
        return
    for check in sandbox.check(settings.workspace.resolve()):
        yield _say(check.status, check.text, *check.details)


def _check_modes(deps: AgentDeps) -> Iterator[str]:
    """Whether commands can change the workspace in modes that may not edit every file."""
    has_none = deps.toolbox.sandbox is None
    for slug, mode in deps.catalog.items():
        restriction = deps.seat(slug).edit_restriction
        if mode.is_closed_off("command"):
            how = "are not there, as there is no" if has_none else "run unasked in a read-only"
            yield _say(NO if has_none else YES, f"commands in {slug} mode {how} sandbox")
        elif restriction is None or mode.grant("command") is None:
            continue
        elif has_none:
            text = f"commands in {slug} mode can change the workspace, if you approve them"
            yield _say(NO, text, f"although {restriction}")
        else:
            yield _say(YES, f"commands in {slug} mode cannot change the workspace", restriction)


def _check_models(deps: AgentDeps) -> Iterator[str]:
    """What the models' servers say of them, and how a change of mode is sent to each."""
    modes = {mode.model or deps.models.default: mode for mode in reversed(deps.catalog.values())}
    for name, mode in modes.items():
        if problem := deps.models.problem(mode):
            yield _say(NO, problem)
        elif name != "offline":
            seat = deps.seat(mode.slug)
            window, server = seat.model.window, seat.model.service.server
            says = f"{name} reads {window:,} tokens" if window else f"{name}: no window is known"
            if server is None:
                says = f"{name}: its server is not there, or not ready: it is asked again later"
            is_small = window is not None and seat.first_request_size > window
            kind = PART if is_small or not window else YES
            says = describe_window(deps, seat, {}) if is_small else says
            yield _say(kind, says, f"a change of mode: {seat.describe_way()}")


def _check_server(settings: Settings) -> Iterator[str]:
    yield _say(YES, "other web pages cannot use the dev server: Host, Origin and body are checked")
    if settings.tokens:
        yield _say(YES, f"the server on {settings.listen} asks for a token")
    else:
        yield _say(
            PART,
            "any program of this machine can use the dev server, other machines cannot",
            "set AUTH_TOKEN to ask for a token",
        )


def _check_parts() -> Iterator[str]:
    for entry in (entry for group in GROUPS for entry in list_parts(group)):
        try:
            load_part(entry)
        except ConfigurationError as error:
            yield _say(NO, str(error))
