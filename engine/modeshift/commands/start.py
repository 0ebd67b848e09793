"""``make start``: a new clone from this one, or from an example in it, on the engine's wheel."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from modeshift.modes.errors import ConfigurationError
from modeshift.project import ENGINE, ENGINE_FOLDER, find_root

LEFT_OUT = (
    *(f"{ENGINE_FOLDER}/", ".ci/starter/", "examples/", "wheels/"),
    *("docs/pictures/", ".github/", "CONTRIBUTING.md"),
)
OWN = ("modes/", "prompts/", "tools/", "tests/", "cassettes/", "README.md")
"""Files that an example has instead of the clone's."""
SHARED = (
    *("prompts/_", "tools/conversation.py"),
    *("tests/test_graph.py", "tests/test_mode_names.py", "tests/test_snapshots.py"),
)
"""Files that an example takes from the clone, because they fit every agent."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def main(
    to: str | None = None, source: str | None = None, name: str | None = None
) -> Iterator[str]:
    """Write the clone, and say what was written. Nothing is if it raises ``ConfigurationError``."""
    root = find_root()
    if not to:
        raise ConfigurationError("say where the new clone begins: make start TO=../shop")
    target = Path(to).expanduser().absolute()
    name = name or target.name.lower().replace("_", "-")
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is no package name: give one of small letters, digits and dashes, NAME=shop"
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigurationError(f"TO={to!r} has files already: name an empty folder, or a new one")
    example = _find_example(root, source)
    wheel = _find_wheel(root)
    for file in _list_files(root):
        is_own = file.startswith(OWN) and not file.startswith(SHARED)
        if not file.startswith(LEFT_OUT) and not (is_own and (example or file == "README.md")):
            _copy(root / file, target / file)
    if example is not None:
        for file in _list_files(example):
            _copy(example / file, target / file)
    _copy(wheel, target / "wheels" / wheel.name)
    project = target / "pyproject.toml"
    project.write_text(_name_wheel(project.read_text("utf-8"), name, wheel), encoding="utf-8")
    if not (target / "README.md").exists():
        (target / "README.md").write_text(README.format(name=name), encoding="utf-8")
    _run("git", "init", "--quiet", str(target))
    yield f"{target}: {name}, on {wheel.name}; next: cd {to} && make dev"


README = """\
# {name}

An agent that works in modes: `make dev` serves it, `make chat` talks to it, `make test` tests it.

<!-- modes -->
<!-- /modes -->
"""


def _find_example(root: Path, source: str | None) -> Path | None:
    examples = sorted(folder.name for folder in root.glob("examples/*") if folder.is_dir())
    if not source:
        return None
    if source not in examples:
        there = f"there are: {', '.join(examples)}" if examples else "there are none here"
        raise ConfigurationError(f"FROM={source!r} is no example; {there}")
    return root / "examples" / source


def _find_wheel(root: Path) -> Path:
    """The wheel that this clone has, or one that is built from its folder ``engine``."""
    folder = root / "wheels"
    if (root / ENGINE_FOLDER).is_dir():
        folder = root / ".venv/wheels"
        shutil.rmtree(folder, ignore_errors=True)
        uv = Path(sys.executable).with_name("uv")
        engine = str(root / ENGINE_FOLDER)
        _run(str(uv), "build", "--quiet", "--wheel", "--out-dir", str(folder), engine)
    named = (root / "pyproject.toml").read_text(encoding="utf-8")
    for wheel in folder.glob(f"{ENGINE}-*.whl"):
        if folder != root / "wheels" or wheel.name in named:  # an older one may lie beside it
            return wheel
    raise ConfigurationError(f"there is no wheel of the engine in {folder}: put it there")


def _list_files(folder: Path) -> list[str]:
    """The files that git knows, or would after ``git add``."""
    listed = _run("git", "-C", str(folder), "ls-files", "-z", "-co", "--exclude-standard")
    return [name for name in listed.split("\0") if name and (folder / name).is_file()]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _name_wheel(text: str, name: str, wheel: Path) -> str:
    """``pyproject.toml`` with the clone's name, and the wheel by its file and hash."""
    digest = sha256(wheel.read_bytes()).hexdigest()
    text = re.sub(r'(?m)^name = ".*"', f'name = "{name}"', text, count=1)
    text = re.sub(
        rf'"({ENGINE}(?:\[[^]]*\])?) @ [^"]*"',
        lambda found: f'"{found[1]} @ {{root:uri}}/wheels/{wheel.name}#sha256={digest}"',
        text,
    )
    path = f'{ENGINE} = {{ path = "wheels/{wheel.name}" }}\n'
    return re.sub(rf"(?m)^{ENGINE} = \{{.*\}}\n", path, text)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # git, uv
    if done.returncode:
        raise ConfigurationError(f"{command[0]} says: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
