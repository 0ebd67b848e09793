"""Environments in which a part of what is installed here is installed, by links: real ones."""

import shutil
import sys
import venv
from collections.abc import Collection, Iterable
from functools import cache
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness.root import ENGINE

Names = dict[str, set[str]]
"""Extras by distribution, or distributions by path."""
SCRIPT = "#!{python}\nfrom modeshift.__main__ import serve_editor\nserve_editor()\n"


def close_over(name: str, extras: Iterable[str], found: Names | None = None) -> set[str]:
    """The distributions that an installer would install for ``name[extras]``."""
    found = {} if found is None else found
    key = canonicalize_name(name)
    new = {"", *extras} - found.get(key, set())
    if new:
        found.setdefault(key, set()).update(new)
        for requirement in map(Requirement, distribution(name).requires or ()):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in new):
                close_over(requirement.name, requirement.extras, found)
    return set(found)


@cache
def _list_files() -> Names:
    owners: Names = {}
    for one in distributions():
        name = canonicalize_name(one.name)
        for file in one.files or ():
            if ".." not in file.parts:
                for path in (file, *list(file.parents)[:-1]):
                    owners.setdefault(str(path), set()).add(name)
    return owners


def _link(chosen: Collection[str], source: Path, target: Path, inside: str = "") -> None:
    """Link what the chosen distributions have in a folder; whole folders that only they have."""
    for path in source.iterdir():
        name = f"{inside}{path.name}"
        owners = _list_files().get(name, set())
        if owners and owners <= set(chosen):
            (target / path.name).symlink_to(path)
        elif owners & set(chosen):
            (target / path.name).mkdir()
            _link(chosen, path, target / path.name, f"{name}/")


class Installed:
    """A virtual environment with the engine and these extras of it, and nothing else."""

    def __init__(self, folder: Path, extras: Iterable[str]) -> None:
        venv.create(folder, symlinks=True)
        self.python = folder / "bin/python"
        self.packages = next(folder.glob("lib/python*/site-packages"))
        info = Path(str(distribution("modeshift").locate_file("")))
        chosen = close_over("modeshift", extras) - {"modeshift"}
        _link(chosen, info, self.packages)
        (found,) = info.glob("modeshift-*.dist-info")
        self.info = self.packages / found.name
        shutil.copytree(found, self.info)
        (self.packages / "modeshift.pth").write_text(str(ENGINE))
        script = folder / "bin/modeshift-acp"
        script.write_text(SCRIPT.format(python=self.python))
        script.chmod(0o755)
        assert sys.prefix not in str(self.packages)

    def add(self, name: str, entry_points: str, code: str) -> None:
        """Install another distribution: one module, and what it offers."""
        info = self.packages / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        (self.packages / f"{name}.py").write_text(code)
