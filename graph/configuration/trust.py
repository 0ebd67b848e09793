"""``TrustFile``: the workspaces whose own modes and rules a person has accepted, as they were."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from pydantic import TypeAdapter, ValidationError

from modes.errors import ConfigurationError, describe_misfit
from modes.plain_text import to_one_line
from tools.mcp.described import ToolDescription

Digests = Mapping[str, str]
"""Of the project's files, by name."""
_SERVERS = "mcpServers"
"""Beside the workspaces, which are absolute paths."""


@dataclass(frozen=True)
class TrustedServer:
    """A workspace's MCP server as a person has accepted it: whole, to show what changes."""

    entry: Mapping[str, Any]
    """As its file had it."""
    tools: Mapping[str, ToolDescription]
    """All that may be bound, by name."""

    def find_changes(self, entry: Mapping[str, Any]) -> str:
        """How ``entry`` differs from what was accepted, in words; empty for not at all."""
        keys = [key for key in {**self.entry, **entry} if self.entry.get(key) != entry.get(key)]
        return "; ".join(
            f"{key} was {_show(self.entry.get(key))}, is now {_show(entry.get(key))}"
            for key in keys
        )


def _show(value: object) -> str:
    return "none" if value is None else to_one_line(json.dumps(value, ensure_ascii=False), 200)


_TRUSTED: TypeAdapter[dict[str, dict[str, TrustedServer]]] = TypeAdapter(
    dict[str, dict[str, TrustedServer]]
)


class TrustFile:
    """What is trusted by the workspace's real path, in a JSON file of the user's."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def trusted(self, folder: Path) -> Digests | None:
        """What was trusted in the folder; None for nothing. Raises ``ConfigurationError``."""
        found = self._read().get(str(folder))
        return found if isinstance(found, dict) else None

    def trusted_servers(self, folder: Path) -> dict[str, TrustedServer]:
        """The MCP servers trusted in the folder, by name. Raises ``ConfigurationError``."""
        return self._read_servers(self._read()).get(str(folder), {})

    def trust_server(self, folder: Path, name: str, server: TrustedServer) -> None:
        """Record trust in an MCP server of the folder; raises ``ConfigurationError``."""
        data = self._read()
        servers = self._read_servers(data)
        servers.setdefault(str(folder), {})[name] = server
        self._write({**data, _SERVERS: _TRUSTED.dump_python(servers, mode="json")})

    def trust(self, folder: Path, digests: Digests) -> None:
        """Record trust; raises ``ConfigurationError`` where the file cannot be read or written."""
        self._write({**self._read(), str(folder): dict(digests)})

    def revoke(self, folder: Path) -> bool:
        """Forget the folder; returns whether it was trusted. Raises ``ConfigurationError``."""
        trusted = self._read()
        servers = self._read_servers(trusted)
        had = [found.pop(str(folder), None) for found in (trusted, servers)]
        self._write({**trusted, _SERVERS: _TRUSTED.dump_python(servers, mode="json")})
        return any(one is not None for one in had)

    def _read_servers(self, data: Mapping[str, Any]) -> dict[str, dict[str, TrustedServer]]:
        try:
            return _TRUSTED.validate_python(data.get(_SERVERS, {}))
        except ValidationError as error:
            raise ConfigurationError(
                f"{self.path}: {_SERVERS}: {describe_misfit(error)}; fix the file or remove it"
            ) from error

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{self.path} cannot be read, so no workspace is trusted: {error}; "
                "fix the file or remove it"
            ) from error
        if not isinstance(data, dict):
            raise ConfigurationError(f"{self.path} is not a JSON object; fix the file or remove it")
        return data

    def _write(self, trusted: dict[str, Any]) -> None:
        temporary = self.path.with_name(f"{self.path.name}-{token_hex(8)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(trusted, indent=2) + "\n", encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error}") from error


def find_differences(trusted: Digests, found: Digests) -> list[str]:
    """How the files differ from what was trusted, in words."""
    words = [f"{name} is new" for name in found if name not in trusted]
    words += [f"{name} is gone" for name in trusted if name not in found]
    words += [
        f"{name} has changed" for name in found if trusted.get(name, found[name]) != found[name]
    ]
    return sorted(words)
