"""``call_title`` and ``find_effect``: what a call is called, and what kind of call it is."""

from collections.abc import Mapping

from modeshift.calls.requests import build_title
from modeshift.modes.effects import NO_EFFECT, Effect
from modeshift.modes.errors import InvalidCallError
from modeshift.threads.deps import AgentDeps


def call_title(deps: AgentDeps, name: str, args: Mapping[str, object]) -> str:
    """What a call does, in one line; a command's begins with ``$``."""
    title = build_title(deps, name, args)
    try:
        is_command = deps.toolbox[name].spec.command is not None
    except InvalidCallError:
        return title
    return f"$ {title}" if is_command else title


def find_effect(deps: AgentDeps, name: str) -> Effect:
    """The effect of a tool; ``NO_EFFECT`` if there is no such tool."""
    try:
        return deps.toolbox[name].spec.effect
    except InvalidCallError:
        return NO_EFFECT
