"""``Settings``: what the environment and ``.env`` say; raises what is wrong with it."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from dotenv import load_dotenv
from dotenv.parser import parse_stream
from platformdirs import user_config_path, user_data_path
from pydantic import (
    AfterValidator,
    BeforeValidator,
    DirectoryPath,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from modeshift.models.ceiling import Ceiling
from modeshift.modes.errors import ConfigurationError
from modeshift.modes.policy import Approvals
from modeshift.modes.rules.urls import parse_authority
from modeshift.project import find_root
from modeshift.storage.database import Database
from modeshift.storage.opening import open_database

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MIN_TOKEN = 16
FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What the name of a workspace, and of its user, may be."""
DATA = user_data_path("modeshift", appauthor=False)


def _split(value: str | tuple[str, ...]) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def _make_absolute(path: Path) -> Path:
    return path.expanduser().absolute()


_ABSOLUTE = AfterValidator(_make_absolute)
AbsolutePath = Annotated[Path, _ABSOLUTE]
Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Several values, with commas between them."""


def name_source(source: str | None) -> str:
    """The repository's name, or ``main`` where there is none that can be a folder's."""
    last = re.split(r"[/:]", source.rstrip("/"))[-1].removesuffix(".git") if source else ""
    return last if FOLDER_NAME.fullmatch(last) else "main"


def get_env_file() -> Path:
    """The clone's ``.env``."""
    return find_root() / ".env"


def get_default_workspace() -> Path:
    """The folder to work in where the user names none."""
    return find_root() / "workspace"


def get_modes_folder() -> Path:
    """The clone's own modes."""
    return find_root() / "modes"


class Settings(BaseSettings):
    """What a person sets. A field's name in capitals is the variable's.

    What each means is in ``docs/run/settings.md`` of the clone, once for everybody.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    model: str = "offline"
    models: Listed = ()
    context_window: int | None = Field(None, ge=1024)  # tokens
    cache_ttl: Literal["5m", "1h"] = "5m"
    model_parameters: Annotated[Mapping[str, object], NoDecode] = {}
    mode_changes: Literal["auto", "tool_changes", "allowed_tools", "append", "rewrite"] = "auto"
    workspace: AbsolutePath = Field(default_factory=get_default_workspace)
    workspaces: AbsolutePath | None = None
    workspaces_per: Literal["user", "thread"] = "user"
    workspaces_from: Listed = ()
    approvals: Approvals = Approvals.MANUAL
    default_mode: str | None = None
    sandbox: Literal["auto", "off"] = "auto"
    command_network: bool = False
    command_secrets: bool = False
    network_hosts: Listed = ()
    command_memory: int = Field(4096, ge=64)  # MiB, of a command with all its processes
    command_processes: int = Field(512, ge=8)
    bound_answers: bool = False
    trust_workspace: bool = False  # its modes and rules, not its MCP servers
    config_folder: AbsolutePath = user_config_path("modeshift", appauthor=False)
    rules_folders: Listed = ("~/.kilocode", "~/.roo")
    modes_folder: Annotated[DirectoryPath, _ABSOLUTE] = Field(default_factory=get_modes_folder)
    trust_file: AbsolutePath = DATA / "trusted.json"
    checkpoints: AbsolutePath = DATA / "checkpoints.sqlite"
    sessions: AbsolutePath = DATA / "sessions.sqlite"
    database_url: SecretStr = SecretStr("")
    database_timeout: float = Field(30, gt=0)  # seconds
    sqlite_synchronous: Literal["normal", "full"] = "normal"
    allowed_origins: Listed = (
        *("https://smith.langchain.com", "http://localhost:3000", "http://127.0.0.1:3000"),
    )
    auth_token: SecretStr = SecretStr("")  # one, or ``name:token`` for each user
    listen: str = "127.0.0.1"
    subtask_depth: int = Field(1, ge=0, le=5)
    max_switches: int = Field(10, ge=0)  # in a turn, where the model asks
    max_turn_cost: Annotated[Ceiling | None, NoDecode] = None
    max_cost: Annotated[Ceiling | None, NoDecode] = None
    notify: str = ""
    notify_secret: SecretStr = SecretStr("")
    notify_content: bool = False
    undo_days: int = Field(7, ge=0)
    stop_seconds: int = Field(30, ge=0)
    log_format: Literal["text", "json"] = "text"
    max_steps: int = Field(500, ge=1)  # model and tool steps in one run

    @field_validator("max_turn_cost", "max_cost", mode="before")
    @classmethod
    def _read_ceiling(cls, value: str | Ceiling | None) -> Ceiling | None:
        return Ceiling.parse(value) if isinstance(value, str) else value

    @field_validator("models")
    @classmethod
    def _check_models(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        for model in models:
            provider, _, name = model.partition(":")
            if model != "offline" and not (provider and name):
                raise ValueError(
                    f"{model!r} is neither 'offline' nor 'provider:name', "
                    "such as 'anthropic:claude-sonnet-5-5'"
                )
        return models

    @field_validator("model_parameters", mode="before")
    @classmethod
    def _read_parameters(cls, value: object) -> object:
        try:
            read = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise ValueError('is not a JSON object such as {"temperature": 0}')
        return read

    @field_validator("allowed_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            parsed = urlsplit(origin)
            is_web = parsed.scheme in ("http", "https") and bool(parsed.hostname)
            if not is_web or origin != f"{parsed.scheme}://{parsed.netloc}":
                raise ValueError(f"{origin!r} is not of the form scheme://host[:port]")
        return origins

    @field_validator("network_hosts")
    @classmethod
    def _normalize_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(parse_authority, hosts))

    @property
    def all_rules_folders(self) -> tuple[Path, ...]:
        """The folders in which the user may have rules for every workspace."""
        folders = (Path(folder).expanduser() for folder in self.rules_folders)
        return (*folders, self.config_folder)

    @property
    def choices(self) -> tuple[str, ...]:
        """The models that an editor's user may choose from; ``model`` is the first."""
        return tuple(dict.fromkeys((self.model, *self.models)))

    def with_model(self, model: str) -> Self:
        """The settings with another model, and the parameters if its provider is the same."""
        is_same = model.partition(":")[0] == self.model.partition(":")[0]
        parameters = self.model_parameters if is_same else {}
        return self.model_copy(update={"model": model, "model_parameters": parameters})

    @property
    def has_postgres(self) -> bool:
        """Whether threads and sessions are in Postgres, and not in files."""
        return bool(self.database_url.get_secret_value())

    def open_database(self, file: Path | None = None) -> Database:
        """The database with the threads: Postgres, or ``file``, by default that of the server.

        Raises ``ConfigurationError``.
        """
        return open_database(
            self.database_url.get_secret_value(),
            file or self.checkpoints,
            timeout=self.database_timeout,
            synchronous=self.sqlite_synchronous,
        )

    @property
    def tokens(self) -> dict[str, str]:
        """Names of users by their tokens; none where no token is asked for."""
        pairs = (entry.rpartition(":") for entry in _split(self.auth_token.get_secret_value()))
        return {token: name or "owner" for name, _, token in pairs}

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        """Checks all fields at once, so that the message does not quote a secret."""
        names: dict[str, str] = {}
        for source in self.workspaces_from:
            url = urlsplit(source)
            is_token = url.username and url.scheme not in ("ssh", "")
            if url.password or is_token or (url.query and not source.startswith("/")):
                raise ValueError(
                    "WORKSPACES_FROM has a git URL with a password or token before '@' or behind "
                    "'?', which would be in each workspace; leave it out"
                )
            if not re.match(r"https://|ssh://|file:///|/|[\w.-]+@[\w.-]+:", source):
                raise ValueError(
                    f"WORKSPACES_FROM: {source!r} is no git URL: give https://, ssh:// or "
                    "git@host:path"
                )
            other = names.setdefault(name_source(source).casefold(), source)
            if other is not source and self.workspaces_per == "user":
                raise ValueError(
                    f"WORKSPACES_FROM: {other!r} and {source!r} would both be the workspace "
                    f"{name_source(source)!r}; leave one out, or set WORKSPACES_PER=thread"
                )
        return self

    @model_validator(mode="after")
    def _check_exposure(self) -> Self:
        if any(len(token) < MIN_TOKEN for token in self.tokens):
            raise ValueError(f"AUTH_TOKEN has a token of less than {MIN_TOKEN} characters")
        if self.listen not in LOOPBACK and not self.tokens:
            raise ValueError(
                f"LISTEN={self.listen!r} lets others on the network in; set AUTH_TOKEN too"
            )
        if self.workspaces is not None:
            for user in self.tokens.values():
                if not FOLDER_NAME.fullmatch(user):
                    raise ValueError(
                        f"AUTH_TOKEN names the user {user!r}, who has a folder in WORKSPACES: take "
                        "letters, digits, dots and dashes"
                    )
        if self.command_network and self.sandbox == "auto" and not self.tokens:
            raise ValueError(
                "COMMAND_NETWORK=true lets a command use the dev server, and approve its own "
                "calls there; set AUTH_TOKEN too"
            )
        return self


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
        raise ConfigurationError(f"{problems}; see docs/run/settings.md") from error
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
        raise ConfigurationError(f"{env_file} is not UTF-8; see docs/run/settings.md") from error
    for binding in bindings:
        if binding.error or (binding.key and binding.value is None):
            line = binding.original.string.lstrip()  # blank lines before it belong to it
            blank = binding.original.string.removesuffix(line).count("\n")
            raise ConfigurationError(
                f"line {binding.original.line + blank} of {env_file} is not NAME=value,"
                " or a quote in it is not closed; see docs/run/settings.md"
            )
    return [binding.key for binding in bindings if binding.key]


def _check_names(names: Iterable[str], source: str, cutoff: float) -> None:
    """Raises for a name that is almost a setting's; all others are not ours to judge."""
    known = [name.upper() for name in Settings.model_fields]
    for name in names:
        if name.upper() in known or name in NOT_OURS:
            continue
        like = get_close_matches(name.upper(), known, n=1, cutoff=cutoff)
        if like:
            raise ConfigurationError(
                f"{name} in {source} is not a setting; did you mean {like[0]}? "
                "See docs/run/settings.md"
            )


def _describe(problem: ErrorDetails) -> str:
    text = problem["msg"].removeprefix("Value error, ")
    if not problem["loc"]:
        return text  # about several settings, a secret among them perhaps
    if problem["type"] == "bool_parsing":
        text = "give true or false"
    return f"{str(problem['loc'][0]).upper()}={problem['input']!r}: {text}"
