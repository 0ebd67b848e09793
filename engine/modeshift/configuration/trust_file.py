"""``TrustFile``: the workspaces whose own modes and rules a person has accepted, as they were."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from pydantic import BaseModel, ValidationError

from modeshift.modes.errors import ConfigurationError, describe_misfit
from modeshift.modes.plain_data import JsonObject
from modeshift.modes.plain_text import to_one_line
from modeshift.tools.servers import ToolDescription

Digests = Mapping[str, str]
"""Digests of the project's files, by name."""


@dataclass(frozen=True)
class TrustedServer:
    """A workspace's MCP server as a person has accepted it: whole, to show what changes."""

    entry: JsonObject
    """The server's entry as its file had it."""
    tools: Mapping[str, ToolDescription]
    """All tools that the model may get, by name."""

    def find_changes(self, entry: JsonObject) -> str:
        """How ``entry`` differs from what was accepted, in words; empty if it does not."""
        keys = [key for key in {**self.entry, **entry} if self.entry.get(key) != entry.get(key)]
        return "; ".join(
            f"{key} was {_show(self.entry.get(key))}, is now {_show(entry.get(key))}"
            for key in keys
        )


def _show(value: object) -> str:
    return "none" if value is None else to_one_line(json.dumps(value, ensure_ascii=False), 200)


class _Record(BaseModel, extra="allow"):
    """The file: the digests of each folder's files by its path, and MCP servers by folder."""

    __pydantic_extra__: dict[str, dict[str, str]]

    mcpServers: dict[str, dict[str, TrustedServer]] = {}  # noqa: N815  # its name in the file

    @property
    def folders(self) -> dict[str, dict[str, str]]:
        """The digests by folder: fields whose names are absolute paths."""
        return self.__pydantic_extra__


class TrustFile:
    """What is trusted by the workspace's real path, in a JSON file of the user's.

    All methods raise ``ConfigurationError`` where it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def trusted(self, folder: Path) -> Digests | None:
        """What was trusted in the folder; None for nothing."""
        return self._read().folders.get(str(folder))

    def trusted_servers(self, folder: Path) -> dict[str, TrustedServer]:
        """The MCP servers trusted in the folder, by name."""
        return self._read().mcpServers.get(str(folder), {})

    def trust_server(self, folder: Path, name: str, server: TrustedServer) -> None:
        """Record trust in an MCP server of the folder."""
        record = self._read()
        record.mcpServers.setdefault(str(folder), {})[name] = server
        self._write(record)

    def trust(self, folder: Path, digests: Digests) -> None:
        """Record trust in the folder's files."""
        record = self._read()
        record.folders[str(folder)] = dict(digests)
        self._write(record)

    def revoke(self, folder: Path) -> bool:
        """Forget the folder; returns whether it was trusted."""
        record = self._read()
        had = [entries.pop(str(folder), None) for entries in (record.folders, record.mcpServers)]
        self._write(record)
        return any(each is not None for each in had)

    def _read(self) -> _Record:
        try:
            return _Record.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return _Record()
        except (OSError, ValidationError) as error:
            why = describe_misfit(error) if isinstance(error, ValidationError) else error
            raise ConfigurationError(
                f"{self.path} cannot be read, so no workspace is trusted: {why}; "
                "fix the file or remove it"
            ) from error

    def _write(self, record: _Record) -> None:
        temporary = self.path.with_name(f"{self.path.name}-{token_hex(8)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error}") from error


def find_differences(trusted: Digests, now: Digests) -> list[str]:
    """How the files differ from what was trusted, in words."""
    words = [f"{name} is new" for name in now if name not in trusted]
    words += [f"{name} is gone" for name in trusted if name not in now]
    words += [f"{name} has changed" for name in now if trusted.get(name, now[name]) != now[name]]
    return sorted(words)
