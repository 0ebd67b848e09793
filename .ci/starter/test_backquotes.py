"""What pages and docstrings name in backquotes is there: files, make targets, settings, names."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module

from pages import ALL_PAGES
from repository import ROOT

from modeshift.configuration.settings import Settings
from tests.harness.clone import git

FILES = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "*.py").stdout.split()
SOURCES = [name for name in FILES if (ROOT / name).is_file() and not name.startswith("examples/")]
SUFFIXES = r"\.(?:py|md|ya?ml|json|toml|lock|sh|service|example)"
USERS = re.compile(
    r"\.|.*/\.|(custom_modes|permissions|prices|mcp)\.|(AGENTS|.*SKILL)\.md|workspace/"
    r"|_(base|mode|summary)\.md|modes/(project|properties)\.yaml|cassettes/test_words/|(rules|wheels)/"
)
"""What people, programs and the recipes of the pages make."""
MADE = {name for text in ALL_PAGES.values() for name in re.findall(r"<!-- .*?(\S+/\S+) -->", text)}


def read_docstrings(name: str) -> str:
    """All texts of a module that are statements of their own."""
    nodes = ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
    values = (node.value for node in nodes if isinstance(node, ast.Expr))
    return "\n".join(str(each.value) for each in values if isinstance(each, ast.Constant))


def list_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / makefile).read_text(), re.M))


OWNERS, ENGINES = list_targets("Makefile"), list_targets("engine/Makefile")
CODE = "\n".join((ROOT / name).read_text() for name in [*SOURCES, ".ci/venv", "Makefile"])
WORDS = {*re.findall(r"\w+", CODE), *map(str.upper, Settings.model_fields)}
PROJECT = (ROOT / "engine/pyproject.toml").read_text(encoding="utf-8")


def is_file(path: str, name: str) -> bool:
    """Whether the page or module ``name`` can mean a file that there is."""
    near = [ROOT, (ROOT / name).parent]
    if name.startswith("engine/"):
        near += [ROOT / "engine", ROOT / "engine/modeshift", ROOT / "engine/template"]
    return any(any(folder.glob(re.sub(r"<\w+>", "*", path))) for folder in near)


def is_name(dotted: str) -> bool:
    module, _, attribute = dotted.rpartition(".")
    try:
        return hasattr(import_module(module), attribute) or bool(import_module(dotted))
    except ImportError:
        return f'entry-points."{dotted}"' in PROJECT


def find_stale(name: str, text: str) -> Iterator[str]:
    targets = OWNERS | ENGINES if name.startswith("engine/") else OWNERS
    for inside, target in re.findall(
        r"(?:`|^)(?:\w+=\S+ )*make (-C engine )?([a-z][a-z-]*)", text, re.M
    ):
        if target not in (ENGINES if inside else targets):
            yield f"make {target}"
    for quoted in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S)):
        path = re.fullmatch(rf"[\w.*<>-][\w.*<>/-]*(?:{SUFFIXES}|(?<=\w)/)", quoted)
        if path and quoted not in MADE and not USERS.match(quoted) and not is_file(quoted, name):
            yield quoted
        setting = re.match(r"([A-Z]+_[A-Z_]+)(=|$)", quoted)
        if setting and name in ALL_PAGES and setting[1] not in WORDS:
            yield quoted
        dotted = re.match(r"modeshift(\.\w+)+(?![\w-])", quoted)
        if dotted and not is_name(dotted[0]):
            yield quoted


def test_what_stands_in_backquotes_is_there() -> None:
    texts = {**ALL_PAGES, **{name: read_docstrings(name) for name in SOURCES}}
    del texts["engine/CHANGELOG.md"]  # which says what was there before
    stale = [f"{name}: {what}" for name, text in texts.items() for what in find_stale(name, text)]
    assert not stale, "\n".join(stale)
