"""``load_settings``: the settings as the environment and ``.env`` have them, or what is wrong."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from io import StringIO
from pathlib import Path

from dotenv import load_dotenv
from dotenv.parser import parse_stream
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from modeshift.graph.settings import Settings, get_env_file
from modeshift.modes.errors import ConfigurationError

NOT_OURS = frozenset({"DEFAULT_MODEL", "MODE", "OAUTH_TOKEN", "SESSION"})
"""Variables with other meanings whose names are close to a setting's."""


def load_settings(env_file: Path | None = None) -> Settings:
    """Read the settings; what the environment sets wins over ``env_file``.

    The other variables in ``env_file`` (a provider's key, say) go into the
    environment, where the provider's client looks. Raises ``ConfigurationError``.
    """
    env_file = env_file or get_env_file()
    _check_names(_read_names(env_file), str(env_file), cutoff=0.8)
    _check_names(os.environ, "the environment", cutoff=0.92)  # full of other programs' names
    load_dotenv(env_file, override=False)
    try:
        settings = Settings()
    except ValidationError as error:
        problems = "; ".join(map(_describe, error.errors()))
        raise ConfigurationError(f"{problems}; see .env.example") from error
    folder = settings.config_folder
    if "config_folder" in settings.model_fields_set and not folder.is_dir():
        raise ConfigurationError(
            f"CONFIG_FOLDER={str(folder)!r} is not a folder; make it, or leave CONFIG_FOLDER out"
        )
    return settings


def _read_names(env_file: Path) -> list[str]:
    """Raises for a line that ``load_dotenv`` drops: without its ``AUTH_TOKEN`` a server is open."""
    if not env_file.is_file():
        return []
    try:
        bindings = list(parse_stream(StringIO(env_file.read_text(encoding="utf-8"))))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{env_file} is not UTF-8; see .env.example") from error
    for binding in bindings:
        if binding.error or (binding.key and binding.value is None):
            line = binding.original.string.lstrip()  # what is blank before it belongs to it
            blank = binding.original.string.removesuffix(line).count("\n")
            raise ConfigurationError(
                f"line {binding.original.line + blank} of {env_file} is not NAME=value,"
                " or a quote in it is not closed; see .env.example"
            )
    return [binding.key for binding in bindings if binding.key]


def _check_names(given: Iterable[str], source: str, cutoff: float) -> None:
    """Raises for a name that is almost a setting's; all others are not ours to judge."""
    known = [name.upper() for name in Settings.model_fields]
    for name in given:
        if name.upper() in known or name in NOT_OURS:
            continue
        like = get_close_matches(name.upper(), known, n=1, cutoff=cutoff)
        if like:
            raise ConfigurationError(
                f"{name} in {source} is not a setting; did you mean {like[0]}? See .env.example"
            )


def _describe(problem: ErrorDetails) -> str:
    text = problem["msg"].removeprefix("Value error, ")
    if not problem["loc"]:
        return text  # about several settings, a secret among them perhaps
    if problem["type"] == "bool_parsing":
        text = "give true or false"
    return f"{str(problem['loc'][0]).upper()}={problem['input']!r}: {text}"
