"""``Start``: all that it takes to start a program, once."""

import os
import subprocess
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Start:
    """``close`` it behind the start."""

    command: list[str]
    environment: dict[str, str]
    folder: str = "/"
    descriptors: tuple[int, ...] = ()
    """Open ones that the program gets, under the same numbers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptors on this side."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def run(self, seconds: int) -> None:
        """Run it to its end; raises ``subprocess.SubprocessError`` if it fails, and ``OSError``."""
        subprocess.run(  # noqa: S603  # not a shell's text
            self.command,
            cwd=self.folder,
            env=self.environment,
            pass_fds=self.descriptors,
            capture_output=True,
            check=True,
            timeout=seconds,
        )
