"""What the model is told: ``_base.md``, and one Markdown file per mode.

``_base.md`` is the frame, a Jinja2 template; a mode's file says how to work in that
mode. What a tool does stands in the tool's docstring, never here. Imports nothing
of ours.
"""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

FOLDER = Path(__file__).parent


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  # Markdown for a model, not HTML
        keep_trailing_newline=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(  # noqa: PLR0913  # what the template has
    *,
    name: str,
    role_definition: str,
    how_to_work: str,
    edit_limit: str,
    command_limit: str,
    custom_instructions: str,
    rules: str = "",
) -> str:
    """The system prompt of a mode.

    ``how_to_work`` is the text of the mode's Markdown file, if it has one.
    ``edit_limit`` says in words which files alone may be changed, ``command_limit`` which
    commands alone may be run; empty for no limit.
    ``rules`` are the project's, as Markdown.
    """
    return (
        _environment()
        .get_template("_base.md")
        .render(
            name=name,
            role_definition=role_definition,
            edit_limit=edit_limit,
            command_limit=command_limit,
            custom_instructions=custom_instructions,
            rules=rules,
            how_to_work=how_to_work,
        )
    )
