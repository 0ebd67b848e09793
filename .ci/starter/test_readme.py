"""README.md, docs/ and .env.example are true: tables, snippets, names, links."""

import ast
import os
import re
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
from pages import ALL_PAGES, PAGES, read_part
from pydantic import SecretStr
from repository import ROOT
from screenshots import are_old
from tables import make_tables

from modeshift.__main__ import COMMANDS
from modeshift.calls.decisions import Decision
from modeshift.configuration.settings import Settings, load_settings
from modeshift.configuration.sources import Sources
from modeshift.models.loading import load_model
from modeshift.modes.policy import Approvals, verdict
from modeshift.testing.renew import make_parts, with_parts
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.modes import load_catalog
from tests.harness.place import UserFolders, in_sandbox
from tests.harness.root import ENGINE

TEXT = "\n".join(PAGES.values())
MAX_WORDS = {"README.md": 2000, "docs": 14100}
"""Of docs a tenth over the last release's, and 900 of use/plan.md. What concerns the engine alone
is in engine/docs."""


def test_the_generated_parts_are_up_to_date() -> None:
    """With ``WRITE=1`` the engine's tables are written; ``make renew`` writes the others."""
    parts, tables = make_parts(load_catalog(folder=ROOT / "modes")), make_tables()
    for name, text in PAGES.items():
        page = with_parts(name, text, tables) if os.environ.get("WRITE") == "1" else text
        if page != text:
            (ROOT / name).write_text(page, encoding="utf-8")
        assert with_parts(name, page, {**parts, **tables}) == page, "make renew"


def test_readme_and_docs_are_short() -> None:
    """Of the docs what is read as words: neither code nor the diagram."""
    assert len(PAGES["README.md"].split()) <= MAX_WORDS["README.md"]
    docs = "\n".join(text for name, text in PAGES.items() if name != "README.md")
    assert len(re.sub(r"```.*?```", "", docs, flags=re.S).split()) <= MAX_WORDS["docs"]


def test_the_pictures_are_of_the_page_as_it_is() -> None:
    """A clone that has deleted them, or has its own, has none to renew."""
    assert not are_old(), "run .ci/starter/screenshots.py where Chromium is"


def anchors(page: str) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", ALL_PAGES[page], flags=re.S), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", ALL_PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", ALL_PAGES[page]):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent.joinpath(file).resolve() if file else ROOT / page
        assert target.exists(), link
        is_engines = page.startswith("engine/docs/")
        assert not is_engines or target.is_relative_to(ENGINE), f"{link}: the engine is whole"
        if anchor:
            assert anchor in anchors(str(target.relative_to(ROOT))), link


def test_the_example_of_a_modes_file_loads_and_holds(place: UserFolders) -> None:
    place.global_modes.write_text(read_part("custom"))
    place.permissions.write_text(read_part("permissions"))
    deps = in_sandbox(place.loader().deps())
    assert not deps.notices
    mode = deps.catalog["docs-writer"]
    for tool, args, kind in (
        ("write_file", {"path": "docs/a.md", "content": "x"}, "ask"),
        ("write_file", {"path": "docs/generated/a.md", "content": "x"}, "deny"),
        ("write_file", {"path": "a.md", "content": "x"}, "deny"),
        ("execute_command", {"command": "git log --oneline"}, "allow"),
        ("execute_command", {"command": "git log --oneline --output=x"}, "ask"),
        ("execute_command", {"command": "git log --oneline | cat"}, "ask"),
        ("execute_command", {"command": "git push"}, "deny"),
        ("execute_command", {"command": "env git push"}, "ask"),
        ("read_file", {"path": "src/.env"}, "deny"),
    ):
        decision = verdict(mode, deps.toolbox[tool].spec, args, Approvals.MANUAL)
        assert decision.kind == kind, (tool, args)


def test_the_example_of_a_mode_of_the_clone_loads(tmp_path: Path) -> None:
    (tmp_path / "reviewer.yaml").write_text(read_part("reviewer"))
    mode = load_catalog("reviewer", tmp_path)["reviewer"]
    assert [grant.group for grant in mode.groups] == ["read", "command"]


def test_the_example_of_mcp_servers_loads(
    place: UserFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "1")
    (place.home / "mcp.json").write_text(read_part("servers"))
    loaded = Sources(place.settings(), Workspace(place.workspace)).load()
    assert [server.name for server in loaded.servers] == ["github", "notes", "docs"]
    assert not loaded.notices


def test_the_files_to_open_are_there() -> None:
    named = r"`((?:[\w.-]+/)*[\w.*<>-]+\.(?:py|md|yaml|json|example))`"
    names = re.findall(named, PAGES["docs/own/clone.md"])
    assert len(names) > 15
    for name in names:
        assert list(ROOT.glob(name.replace("<slug>", "*"))), name


def test_the_models_named_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    example = (ROOT / ".env.example").read_text()
    for provider in ("ANTHROPIC", "OPENAI", "GOOGLE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
    models = set(re.findall(r"(?:MODEL=|^\| `)(\w+:[\w.-]+)`?", TEXT + example, re.M))
    assert len(models) >= 4
    for model in models:
        load_model(model)


def test_the_decisions_are_those_there_are() -> None:
    listed = re.findall(r'^\| `\{"type": "(\w+)"', TEXT, re.M)
    union = get_args(get_args(Decision)[0])
    known = [get_args(decision.__annotations__["type"])[0] for decision in union]
    assert sorted(listed) == sorted(known)


def test_make_help_lists_what_there_is() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = [line.split()[0] for line in shown.stdout.splitlines()]
    assert set(listed) <= targets
    assert {"dev", "chat", "test", "renew", "check"} <= set(listed)
    assert len(listed) <= 12, "the rest is for python -m modeshift, and for who works on the engine"
    called = set(re.findall(r"\$\(MODESHIFT\) ([a-z][a-z-]*)", makefile))
    assert {"usage", "clean-data", "diagram"} <= called <= COMMANDS.keys()


def test_the_page_of_settings_and_the_example_say_each_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    rows = re.findall(r"^\|`([A-Z_]+)`\|`?([^|`]*)`?\|", PAGES["docs/run/settings.md"], re.M)
    assert sorted(name.lower() for name, _ in rows) == sorted(Settings.model_fields)
    example = (ROOT / ".env.example").read_text()
    set_there = re.findall(r"^([A-Z_]+)=(.*)$", example, re.M)
    assert {"MODEL", "APPROVALS"} <= {*dict(set_there)} and len(example.splitlines()) < 40
    for name, value in (*rows, *set_there):
        default = Settings.model_fields[name.lower()].get_default(call_default_factory=True)
        if isinstance(default, SecretStr | Path | None):
            default = ""
        default = ",".join(default) if isinstance(default, tuple) else default
        assert value.lower() == str(default).lower(), name
        monkeypatch.delenv(name, raising=False)
    assert load_settings(ROOT / ".env.example") == load_settings(tmp_path / "none")


def test_nothing_is_done_by_importing() -> None:
    """No folder, no .env, no network: the modules only define, but for what Aegra is told."""
    for folder in ("tools", "graph", "engine/modeshift"):
        for file in {*(ROOT / folder).rglob("*.py")} - {ROOT / "engine/modeshift/aegra/server.py"}:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            calls: list[Any] = [node for node in tree.body if isinstance(node, ast.Expr)]
            assert all(isinstance(node.value, ast.Constant) for node in calls), file


def test_the_lock_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert not re.search(r"^--", lock, re.M)
    pins = re.findall(r"^[a-z0-9][^\s=]*==", lock, re.M)
    assert len(pins) == len(re.findall(r"^[a-z0-9]", lock, re.M))


@pytest.mark.parametrize("folder", ["graph", "tools"])
def test_the_engine_is_tested_with_the_graph_and_tools_of_the_starter(folder: str) -> None:
    for file in (ROOT / folder).glob("*.py"):
        assert file.read_text() == (ENGINE / "template" / folder / file.name).read_text()
