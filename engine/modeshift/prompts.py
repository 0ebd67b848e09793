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
from typing_extensions import TypedDict

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
    """Fill in a template; raises ``ValueError`` if it is broken, or uses an unknown variable."""
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
    """The system prompt, which is the same in every mode.

    Args:
        modes: When to use each mode, by its slug.
        rules: The project's rules for every mode, as Markdown.
        folder: Whose ``_base.md`` is taken, if it has one, instead of the clone's.
        has_files: Whether a tool works on files, or runs commands.
    """
    lines = {slug: " ".join(when.split()) for slug, when in modes.items()}
    return _render("_base.md", folder, modes=lines, rules=rules, has_files=has_files)


def render_summary_request(*, has_files: bool = True) -> str:
    """The request to the model to summarize the conversation."""
    return _render("_summary.md", has_files=has_files)


class ModeWords(TypedDict):
    """The variables of ``_mode.md``; a limit in words is empty if there is none."""

    name: str
    role_definition: str
    tools: Sequence[str]
    """The names of the mode's tools."""
    how_to_work: str
    """The text of the mode's Markdown file, if it has one."""
    edit_limit: str
    """The only files that may be changed."""
    command_limit: str
    """The only commands that may be run."""
    has_closed_commands: bool
    """Whether its commands run in the read-only sandbox alone."""
    host_limit: str
    """What the host lets this thread do at most."""
    custom_instructions: str
    """The user's instructions for this mode."""
    rules: str
    """The project's rules for this mode, as Markdown."""
    open_modes: str
    """The modes to ask for from here, with their conditions; empty for all."""
    task_modes: str
    """The modes in which a sub-task may begin; empty for all."""
    is_subtask: bool
    has_files: bool
    """Whether a tool works on files, or runs commands."""


def render_mode_words(words: ModeWords, folder: Path | None = None) -> str:
    """What the model is told when it enters a mode, by the ``_mode.md`` in ``folder``, if any."""
    return _render("_mode.md", folder, **words)
