"""Running a target of ``make`` in this process."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from modeshift.__main__ import main
from tests.harness.place import UserFolders


@dataclass
class Shown:
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout + self.stderr


Run = Callable[..., Shown]


@pytest.fixture
def run(
    place: UserFolders, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """What a target prints to who gives these answers; ``stderr`` ends with how it ends."""

    def run(*arguments: str, answers: str = "", **given: str) -> Shown:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in answers)))
            for name, value in place.environment(**given).items():
                patch.setenv(name, value)
            code = None
            try:
                main(arguments)
            except SystemExit as exit:
                code = exit.code
        shown = capsys.readouterr()
        return Shown(shown.out, shown.err + (f"{code}" if code else ""))

    return run
