"""``TrustFile``: the workspaces whose own modes and rules a person has accepted, as they were."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

from modes.errors import ConfigurationError

Digests = Mapping[str, str]
"""Of the project's files, by name."""


class TrustFile:
    """What is trusted by the workspace's real path, in a JSON file of the user's."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def trusted(self, folder: Path) -> Digests | None:
        """What was trusted in the folder; None for nothing. Raises ``ConfigurationError``."""
        found = self._read().get(str(folder))
        return found if isinstance(found, dict) else None

    def trust(self, folder: Path, digests: Digests) -> None:
        """Record trust; raises ``ConfigurationError`` where the file cannot be read or written."""
        self._write({**self._read(), str(folder): dict(digests)})

    def revoke(self, folder: Path) -> bool:
        """Forget the folder; returns whether it was trusted. Raises ``ConfigurationError``."""
        trusted = self._read()
        had = trusted.pop(str(folder), None) is not None
        self._write(trusted)
        return had

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{self.path} cannot be read, so no workspace is trusted: {error}; "
                "mend the file or remove it"
            ) from error
        if not isinstance(data, dict):
            raise ConfigurationError(f"{self.path} is no JSON object; mend the file or remove it")
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
