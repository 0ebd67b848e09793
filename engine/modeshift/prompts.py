"""``render_mode_words`` and what else the model is told, from ``_base.md`` and ``_mode.md``.

``_base.md`` is the system prompt, the same in every mode; ``_mode.md`` is the frame of a mode's
own words. Both are Jinja2 templates. ``_summary.md`` asks for a summary of the conversation. A
mode's file says how to work in that mode. What a tool does stands in the tool's docstring, never
here. Imports nothing of ours.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from modeshift.project import find_root


def get_folder() -> Path:
    """The clone's prompts."""
    return find_root() / "prompts"


@cache
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  # Markdown for a model, not HTML
        keep_trailing_newline=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render(template: str, folder: Path | None = None, **values: object) -> str:
    """Raises ``ValueError`` for a template that is broken, or uses what it is not given."""
    if folder is None or not (folder / template).is_file():
        folder = get_folder()
    try:
        return _environment(folder).get_template(template).render(**values)
    except TemplateError as error:
        takes = ", ".join(values) or "nothing"
        raise ValueError(f"prompts/{template}: {error}; the template may use: {takes}") from error


def render_system_prompt(
    modes: Mapping[str, str],
    rules: str = "",
    folder: Path | None = None,
    *,
    has_files: bool = True,
) -> str:
    """What holds in every mode.

    Args:
        modes: When to use each mode, by its slug.
        rules: The project's for every mode, as Markdown.
        folder: Whose ``_base.md`` is taken, if it has one, instead of the clone's.
        has_files: Whether a tool works on files, or runs commands.
    """
    lines = {slug: " ".join(when.split()) for slug, when in modes.items()}
    return _render("_base.md", folder, modes=lines, rules=rules, has_files=has_files)


def render_summary_request(*, has_files: bool = True) -> str:
    """What the model is told to do once the conversation is to be summarized."""
    return _render("_summary.md", has_files=has_files)


def render_mode_words(  # noqa: PLR0913  # what the template has
    *,
    name: str,
    role_definition: str,
    tools: Sequence[str],
    how_to_work: str = "",
    edit_limit: str = "",
    command_limit: str = "",
    host_limit: str = "",
    custom_instructions: str = "",
    rules: str = "",
    open_modes: str = "",
    task_modes: str = "",
    is_subtask: bool = False,
    has_files: bool = True,
    folder: Path | None = None,
) -> str:
    """What the model is told when it enters a mode.

    Args:
        name: The mode's.
        role_definition: The mode's.
        tools: The names of its tools.
        how_to_work: The text of the mode's Markdown file, if it has one.
        edit_limit: Which files alone may be changed, in words; empty for no limit.
        command_limit: Which commands alone may be run; empty for no limit.
        host_limit: What the host lets this thread do at most; empty for no limit.
        custom_instructions: The user's for this mode.
        rules: The project's for this mode, as Markdown.
        open_modes: The modes to ask for from here, with their conditions; empty for all.
        task_modes: Those in which a sub-task may begin; empty for all.
        is_subtask: Whether it is in the mode for a sub-task.
        has_files: Whether a tool works on files, or runs commands.
        folder: Whose ``_mode.md`` is taken, if it has one, instead of the clone's.
    """
    return _render(
        "_mode.md",
        folder,
        name=name,
        role_definition=role_definition,
        tools=tools,
        how_to_work=how_to_work,
        edit_limit=edit_limit,
        command_limit=command_limit,
        host_limit=host_limit,
        custom_instructions=custom_instructions,
        rules=rules,
        open_modes=open_modes,
        task_modes=task_modes,
        is_subtask=is_subtask,
        has_files=has_files,
    )
