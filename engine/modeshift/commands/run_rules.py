"""``RunRule``: what ``make run`` allows where a person would be asked; all else it denies."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from modeshift.calls.requests import ActionRequest
from modeshift.configuration.last_loaded import read_user_file
from modeshift.configuration.settings import Settings
from modeshift.modes.errors import ConfigurationError, InvalidCallError, describe_misfit
from modeshift.modes.plain_data import parse_data
from modeshift.modes.plain_text import escape_invisible
from modeshift.modes.rules.matching import Subject, check_pattern, is_server_tool, word_matches
from modeshift.thread import APPROVE, GivenDecision
from modeshift.threads.deps import AgentDeps

DENIED = "Nobody is there to ask, and no rule of this run allows it. Go on without it."
_HOW = "give a list of rules, such as {mode: code, tool: edit_file, pattern: 'src/*'}"


class RunRule(BaseModel, frozen=True, extra="forbid"):
    """One kind of call in one mode; for ``switch_mode`` and ``new_task`` a pattern of modes."""

    mode: str
    tool: str
    pattern: str


_RULES = TypeAdapter(list[RunRule])


async def decide_by(
    rules: Sequence[RunRule], deps: AgentDeps, action: ActionRequest, mode: str
) -> GivenDecision:
    """Approve what a rule of the mode allows. What a person decides each time is denied."""
    for rule in rules:
        is_for = (rule.mode, rule.tool) == (mode, action["name"])
        if is_for and await _allows(deps, action, rule.pattern):
            return APPROVE
    return {"type": "reject", "message": DENIED}


async def _allows(deps: AgentDeps, action: ActionRequest, pattern: str) -> bool:
    try:
        tool, args = await deps.toolbox.check_call(action["name"], action["args"])
    except InvalidCallError:  # a question of a node's own has no tool
        return False
    if tool.spec.effect.switches_mode:
        return word_matches(pattern, args["mode_slug"])
    # A call that cannot be remembered must be decided by a person each time. Its subject must be
    # the same here: a link may have changed, or differ in the server's workspace.
    subject = Subject(tool.spec, args)
    is_same = subject.exact is not None and escape_invisible(subject.exact) == action.get(
        "remember"
    )
    return is_same and subject.certainly_matches(pattern)


def load_rules(deps: AgentDeps, settings: Settings, file: Path | None) -> list[RunRule]:
    """The rules in the file; without one, none. Raises ``ConfigurationError``, with what to do."""
    if file is None:
        return []
    workspace = settings.workspaces or settings.workspace
    if _leads_through(file.absolute(), workspace.resolve()):
        raise ConfigurationError(
            f"{file} is in the workspace, where the agent may write; keep the rules elsewhere"
        )
    if (text := read_user_file(file)) is None:
        raise ConfigurationError(f"there is no file {file}")
    try:
        rules = _RULES.validate_python(parse_data(text, str(file)) or [])
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {describe_misfit(error)}; {_HOW}") from error
    for number, rule in enumerate(rules, 1):
        if problem := _find_problem(deps, rule):
            raise ConfigurationError(f"{file}: rule {number}: {problem}")
    return rules


def _leads_through(file: Path, folder: Path) -> bool:
    """Whether the path is in the folder, or leads through it, where the agent may change links."""
    steps = [step for step in (file, *file.parents) if step.name != ".."]
    places = (step.parent.resolve() / step.name for step in steps)
    return any(folder in place.parents for place in (*places, file.resolve()))


def _find_problem(deps: AgentDeps, rule: RunRule) -> str | None:
    modes, specs = ", ".join(deps.catalog), {spec.name: spec for spec in deps.toolbox.specs}
    if rule.mode not in deps.catalog:
        return f"there is no mode {rule.mode!r}; the modes are: {modes}"
    if rule.tool not in specs:
        # A server may start later, with a mode that has it.
        is_known = is_server_tool(rule.tool)
        known = ", ".join(specs)
        return None if is_known else f"there is no tool {rule.tool!r}; the tools are: {known}"
    spec = specs[rule.tool]
    try:
        if not spec.effect.switches_mode:
            check_pattern(spec, rule.pattern)
            if not spec.can_be_remembered:
                return (
                    f"no rule allows {rule.tool}: its calls may not be remembered, so a person "
                    "decides whenever it asks"
                )
        elif not any(word_matches(rule.pattern, slug) for slug in deps.catalog):
            return f"no mode matches {rule.pattern!r}; the modes are: {modes}"
    except ValueError as error:
        return str(error)
    return None
