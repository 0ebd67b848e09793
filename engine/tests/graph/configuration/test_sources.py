"""Where modes, rules and permissions come from: levels, trust, and change without a restart."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined
from pydantic import ValidationError

from modeshift.configuration.last_loaded import LastLoaded
from modeshift.configuration.loading import AgentLoader
from modeshift.configuration.prompt_rules import MAX_CHARACTERS
from modeshift.configuration.trust_file import TrustFile
from modeshift.modes.catalog import Catalog
from modeshift.modes.errors import ConfigurationError, ModeFileError
from modeshift.modes.mode import Level
from modeshift.modes.policy import Approvals, verdict
from modeshift.testing.plugin import Snapshot
from modeshift.threads.deps import AgentDeps
from tests.harness.conversation import open_thread
from tests.harness.modes import MODES, load_catalog
from tests.harness.place import UserFolders, modes_file
from tests.tables import rows

BUILT_IN = list(load_catalog())
Make = Callable[[Path], object]


def digests(catalog: Catalog) -> list[str]:
    return [catalog[slug].digest for slug in catalog]


def custom(loader: AgentLoader) -> list[str]:
    """Loads, and gives the slugs that are not built in."""
    return [slug for slug in loader.deps().catalog if slug not in BUILT_IN]


def settle(loader: AgentLoader) -> None:
    """Load until the files are old enough for a change to be told from no change."""
    loader.deps()
    while loader.is_outdated():
        time.sleep(0.06)
        loader.deps()


def prompt(loader: AgentLoader, slug: str) -> str:
    return told(loader.deps(), slug)


def told(deps: AgentDeps, slug: str = "ask") -> str:
    """The system prompt, and the mode's words."""
    return f"{deps.system_prompt}\n{deps.seat(slug).words}"


def test_project_over_global_over_built_in(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("code", "mine", "both", role="Global."))
    (place.home / "custom_modes.json").write_text(
        '{"customModes": [{"slug": "json", "name": "J", "roleDefinition": "j", "groups": []}]}'
    )
    (place.workspace / ".roomodes").write_text(modes_file("both", "roo", role="Roo."))
    place.project_modes.write_text(modes_file("code", "both", groups="read, browser"))
    deps = place.loader(trust_workspace=True).deps()
    catalog = deps.catalog
    assert set(catalog) == {*BUILT_IN, "mine", "json", "roo", "both"}
    levels = {slug: catalog[slug].level for slug in catalog}
    assert levels["ask"] is Level.BUILT_IN
    assert levels["mine"] is levels["json"] is Level.GLOBAL
    assert levels["code"] is levels["both"] is levels["roo"] is Level.PROJECT
    assert catalog["both"].role_definition == "You help.", "Kilo's file goes before Roo's"
    assert catalog["code"].grant("edit") is None
    assert catalog["code"].permissions == {}
    assert deps.notices[0].startswith(".kilocodemodes: group 'browser' is dropped")


def test_other_words_for_a_built_in_mode_change_no_right(place: UserFolders) -> None:
    assert "You make the change." in prompt(place.loader(), "code")
    place.global_modes.write_text(modes_file("code", role="Another."))
    text = prompt(place.loader(), "code")
    assert "You are in N Code mode now. Another." in text
    assert "You make the change." not in text
    before = place.loader().deps()
    mine = "customModePrompts: {ask: {roleDefinition: 'You sing.', groups: [edit]}, x: {}}\n"
    place.global_modes.write_text(mine + modes_file("code", role="Mine."))
    theirs = "customModePrompts: {ask: {whenToUse: 'To sing.'}, code: {roleDefinition: 'No.'}}"
    place.project_modes.write_text(theirs)
    deps = place.loader().deps()
    assert "You sing." in told(deps)
    assert "To sing." not in deps.system_prompt, "the workspace is not trusted"
    deps = place.loader(trust_workspace=True).deps()
    assert "- ask: To sing.\n" in deps.system_prompt
    assert "You sing." in told(deps)
    assert "Mine." in told(deps, "code"), "a mode of a file is used as it is"
    ask = deps.catalog["ask"]
    assert (ask.level, ask.groups) == (Level.BUILT_IN, before.catalog["ask"].groups)
    assert deps.list_tools("ask") == before.list_tools("ask")
    assert deps.notices == (
        f"{place.global_modes}: customModePrompts: there is no built-in mode 'x'",
    )


def test_a_bad_file_leaves_the_others_and_what_has_loaded(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    loader = place.loader(trust_workspace=True)
    for broken in ("", ": :", "x" * 2_000_000):
        place.global_modes.write_text(broken)
        (notice,) = loader.deps().notices
        assert notice.startswith(f"{place.global_modes}: ")
        assert notice.endswith("; it is not used until you mend it")
    place.global_modes.write_text(modes_file("mine"))
    assert custom(loader) == ["mine", "theirs"]
    place.global_modes.write_text(": :")
    deps = loader.deps()
    assert "mine" in deps.catalog
    assert deps.notices[0].endswith("it stays as it was")
    place.global_modes.unlink()
    assert custom(loader) == ["theirs"]
    place.global_modes.write_text(": :")
    assert custom(loader) == ["theirs"], "what was taken away does not come back"


def test_a_bad_mode_leaves_its_neighbours_and_what_it_was(place: UserFolders) -> None:
    bad = modes_file("mine", "other", groups="fly")
    place.global_modes.write_text(bad + modes_file("good")[13:])
    loader = place.loader()
    deps = loader.deps()
    assert custom(loader) == ["good"]
    for slug, notice in zip(("mine", "other"), deps.notices, strict=True):
        assert notice.startswith(
            f"{place.global_modes}: mode '{slug}': groups: unknown group 'fly'"
        )
        assert notice.endswith("; it is not used until you mend it")
    place.global_modes.write_text(modes_file("mine", groups="read, edit"))
    assert custom(loader) == ["mine"]
    place.global_modes.write_text(bad)
    deps = loader.deps()
    assert custom(loader) == ["mine"]
    assert deps.catalog["mine"].grant("edit")
    assert deps.notices[0].endswith("; it stays as it was")
    place.global_modes.write_text(modes_file(*(f"m{n}" for n in range(150)), groups="fly"))
    assert loader.deps().notices[100:] == ("and 50 more notices",)


DENIED = "    permissions: {write_file: {'secret/': deny}, execute_command: deny}\n"
TWICE = {
    "another key": modes_file("code", rest=DENIED + "    name: Again\n"),
    "the key itself": modes_file("code", rest="    permissions: {}\n" + DENIED),
    "it in another mode": modes_file("code", rest=DENIED) + "    slug: other\n",
    "the slug": modes_file("code", "code", rest=DENIED),
    "a list of modes": modes_file("code", rest=DENIED) + modes_file("x"),
    "an unknown group": modes_file("code", groups="fly", rest=DENIED),
    "a misspelt key": modes_file("code", rest=DENIED.replace("permissions", "permission")),
    "a wrong pattern": modes_file("code", rest=DENIED.replace("secret/", "./secret")),
    "JSON": '{"customModes": [{"slug": "code", "slug": "x", "permissions": {"write_file": "deny", '
    '"execute_command": {"*": "deny"}}}]}',
    "an edge to nowhere": modes_file("code", rest=DENIED + "    switches: [nowhere]\n"),
}


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE)
def test_what_a_mode_denies_holds_until_its_file_is_mended(place: UserFolders, text: str) -> None:
    def judge(deps: AgentDeps) -> list[str]:
        calls = ("write_file", {"path": "secret/a"}), ("execute_command", {"command": "ls"})
        mode, box = deps.catalog["code"], deps.toolbox
        return [verdict(mode, box[tool].spec, args, Approvals.AUTO).kind for tool, args in calls]

    file = place.home / "custom_modes.json" if text.startswith("{") else place.global_modes
    file.write_text(text)
    loader = place.loader()
    deps = loader.deps()
    assert deps.catalog["code"].level is Level.BUILT_IN
    assert judge(deps) == ["deny", "deny"]
    assert deps.notices
    file.write_text(modes_file("other"))
    assert judge(loader.deps()) == ["allow", "ask"]


def test_denials_that_cannot_be_read_stop_the_start(place: UserFolders) -> None:
    broken = modes_file("code", rest=DENIED) + "    : [\n"
    place.global_modes.write_text(broken)
    with pytest.raises(ModeFileError, match=r"custom_modes.yaml: .* what it denies cannot be read"):
        place.loader().deps()
    place.global_modes.write_text(modes_file("code", rest=DENIED))
    loader = place.loader()
    before = digests(loader.deps().catalog)
    place.global_modes.write_text(broken)
    assert digests(loader.deps().catalog) == before


def test_whatever_happens_to_the_built_in_modes_the_last_version_stays(place: UserFolders) -> None:
    link = place.root / "template"
    link.symlink_to(MODES.parent)
    loader = place.loader(modes_folder=link / "modes")
    before = digests(loader.deps().catalog)
    link.unlink()
    deps = loader.deps()
    assert digests(deps.catalog) == before
    text = "could not be read again; the modes stay as they were: FileNotFound"
    assert text in deps.notices[0]
    # Not the same files: of those nothing would have changed.
    link.symlink_to(shutil.copytree(MODES.parent, place.root / "copy"))
    assert loader.is_outdated()
    assert loader.deps().notices == ()


@rows(
    "make is_followed",
    (lambda file: file.mkdir(), False),
    (os.mkfifo, False),
    (lambda file: file.symlink_to("nothing"), False),
    (lambda file: file.symlink_to(file.parents[1] / "outside.yaml"), True),
    (lambda file: file.write_bytes(b"\xff\xfe\x00"), False),
    (lambda file: file.write_bytes(b"#" * 10_000_000), False),
)
def test_what_is_no_file(place: UserFolders, make: Make, *, is_followed: bool) -> None:
    """A user's own link is followed, say to dotfiles; the workspace's is not."""
    (place.root / "outside.yaml").write_text(modes_file("strange"))
    for file in (place.global_modes, place.project_modes):
        make(file)
    loader = place.loader(trust_workspace=True)
    assert custom(loader) == (["strange"] if is_followed else [])
    notices = str(loader.deps().notices)
    assert place.project_modes.name in notices
    assert (place.global_modes.name in notices) != is_followed


def test_permissions_stop_the_start_and_later_hold_as_they_were(place: UserFolders) -> None:
    place.permissions.symlink_to(place.root / "nothing")
    with pytest.raises(ModeFileError, match="is not a file"):
        place.loader().deps()
    place.permissions.unlink()
    for text, says in (("write_file: perhaps", "'perhaps'"), ("fly: allow", "tool 'fly'")):
        place.permissions.write_text(text)
        with pytest.raises(ModeFileError, match=rf"permissions\.yaml: .*{says}"):
            place.loader().deps()
    place.permissions.write_text("write_file: deny")
    loader = place.loader()
    before = loader.deps().catalog["code"].denials
    place.permissions.write_text("write_file: deni")
    deps = loader.deps()
    assert deps.catalog["code"].denials == before
    assert deps.notices[0].endswith("it stays as it was")


def test_groups_and_rules_that_cannot_be(place: UserFolders, snapshot: Snapshot) -> None:
    told = {}
    for groups, permissions in (
        ("edit", "{fly: allow}"),
        ("edit", "{switch_mode: allow}"),
        ("edit", "{ask_followup_question: allow}"),
        ("edit", "{update_todo_list: {x: deny}}"),
        ("edit", "{read_file: {'[a]': deny}}"),
        ("edit", "{read_file: {'./a': deny}}"),
        ("edit", "{read_file: {' ': deny}}"),
        ("Read", "{}"),
        ("fly\u200b", "{}"),
    ):
        rest = f"    permissions: {permissions}\n"
        place.global_modes.write_text(modes_file("a", groups=groups, rest=rest))
        deps = place.loader().deps()
        assert "a" not in deps.catalog
        told[f"{groups} {permissions}"] = "\n".join(deps.notices)
    snapshot("groups-and-rules.txt", told)


def test_the_default_mode_may_be_a_custom_one_and_must_be_there(place: UserFolders) -> None:
    place.global_modes.write_text("customModes: 5")
    with pytest.raises(ConfigurationError, match=r"DEFAULT_MODE 'mine' .*customModes is a list"):
        place.loader(default_mode="mine").deps()
    place.global_modes.write_text(modes_file("mine"))
    loader = place.loader(default_mode="mine")
    assert loader.deps().catalog.default == "mine"
    place.global_modes.unlink()
    place.permissions.write_text("write_file: deny")
    deps = loader.deps()
    assert deps.catalog.default == "ask"
    assert deps.catalog["code"].denials
    assert "new threads start in 'ask'" in deps.notices[0]
    folder = place.root / "own/modes"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(OWN)
    with pytest.raises(ConfigurationError, match="no mode is the default one; the modes are: mine"):
        place.loader(modes_folder=folder).deps()
    (folder / "mine.yaml").write_text(f"{OWN}default: true\n")
    assert place.loader(modes_folder=folder).deps().catalog.default == "mine"


def test_a_modes_own_file_says_that_new_threads_start_in_it(place: UserFolders) -> None:
    folder = place.root / "clone/modes"
    shutil.copytree(MODES.parent, folder.parent)
    ask, code = folder / "ask.yaml", folder / "code.yaml"
    code.write_text(code.read_text() + "\ndefault: true\n")
    with pytest.raises(ConfigurationError) as refused:
        place.loader(modes_folder=folder).deps()
    both = "modes/ask.yaml and modes/code.yaml both have 'default: true'; leave it in one of them"
    assert str(refused.value) == both
    ask.write_text(ask.read_text().replace("default: true", ""))
    place.project_modes.write_text(modes_file("theirs", rest="    default: true\n"))
    loader = place.loader(modes_folder=folder, trust_workspace=True)
    deps = loader.deps()
    assert deps.catalog.default == "code"
    assert deps.notices == (".kilocodemodes: mode 'theirs': only the clone's set 'default'",)
    held = place.loader(modes_folder=folder, default_mode="debug").deps()
    assert held.catalog.default == "debug"
    assert held.notices[-1].startswith("DEFAULT_MODE is set, and new threads start in that mode")
    ask.write_text(ask.read_text() + "\ndefault: true\n")
    after = loader.deps()
    assert after.catalog.default == "code", "a running server keeps what it had"
    assert both in after.notices[0]


WIDE = modes_file("ask", "theirs", groups="read, edit, command") + modes_file("x")[13:]


def test_an_untrusted_workspace_changes_nothing_and_it_is_said(place: UserFolders) -> None:
    before = place.loader().deps()
    place.project_modes.write_text(WIDE)
    (place.workspace / ".roomodes").write_text(WIDE)
    place.rule("AGENTS.md", "Obey me.")
    place.rule(".kilocode/rules-ask/a.md", "Obey me.")
    deps = place.loader().deps()
    assert digests(deps.catalog) == digests(before.catalog)
    assert told(deps) == told(before)
    (notice,) = deps.notices
    assert f"make trust WORKSPACE={place.workspace}" in notice
    for name in (".kilocodemodes", ".roomodes", "AGENTS.md"):
        assert name in notice


@rows(
    "change",
    lambda place: place.project_modes.write_text(WIDE),
    lambda place: place.rule("AGENTS.md", "Obey."),
    lambda place: place.rule(".kilocode/rules/new.md", "Obey."),
    lambda place: (place.workspace / "AGENTS.md").mkdir(),
    lambda place: place.project_modes.unlink(),
    lambda place: [place.rule(".roo/rules/a", "two"), place.rule(".roo/rules/b", "one")],
)
def test_a_changed_file_asks(place: UserFolders, change: Callable[[UserFolders], object]) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    place.rule(".roo/rules/a", "one")
    place.rule(".roo/rules/b", "two")
    place.trust()
    loader = place.loader()
    assert custom(loader) == ["theirs"]
    settle(loader)
    change(place)
    assert loader.is_outdated()
    deps = loader.deps()
    assert custom(loader) == ["theirs"], "what was trusted holds in this process"
    assert "are not as you trusted them (" in deps.notices[0]
    assert "what you trusted stays in effect until you do again" in deps.notices[0]
    fresh = place.loader().deps()
    assert list(fresh.catalog) == BUILT_IN
    assert "they are ignored" in fresh.notices[0]
    settle(loader)
    place.trust()
    assert loader.is_outdated()
    assert digests(loader.deps().catalog) == digests(place.loader().deps().catalog)


def test_trust_is_for_one_folder(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    place.trust()
    other = place.root / "other"
    other.mkdir()
    (other / ".kilocodemodes").write_text(modes_file("theirs"))
    assert custom(place.loader(workspace=other)) == []
    link = place.root / "link"
    link.symlink_to(place.workspace)
    assert custom(place.loader(workspace=link)) == ["theirs"]


def test_rules_are_bounded(place: UserFolders, snapshot: Snapshot) -> None:
    place.rule("AGENTS.md", "x" * 200_000)
    place.rule(".roo/rules/big", "y" * 1_000_001)
    for number in range(3):
        place.rule(f".roo/rules/{number}", str(number) * 900_000)
    deps = place.loader(trust_workspace=True).deps()
    text = told(deps)
    assert len(text) < MAX_CHARACTERS + 10_000
    assert "more characters left out]" in text
    notices = {"too much text": "\n".join(deps.notices)}
    for number in range(201):
        place.rule(f".roo/rules/{number}", "UNSEEN")
    deps = place.loader(trust_workspace=True).deps()
    notices["too many files"] = "\n".join(deps.notices)
    snapshot("rules-cut.txt", notices)
    assert "UNSEEN" not in told(deps)


def test_the_file_within_which_rules_are_cut_is_named(place: UserFolders) -> None:
    for slug, name, size in (("code", "a", 20_000), ("code", "b", 29_900), ("ask", "c", 49_900)):
        place.rule(f".roo/rules-{slug}/{name}", "x" * size)
    assert place.loader(trust_workspace=True).deps().notices == ()
    place.rule(".roo/rules-code/b", "x" * 31_000)
    (notice,) = place.loader(trust_workspace=True).deps().notices
    assert notice.endswith("of rules for code; cut or left out: .roo/rules-code/b")


def test_rules_that_are_left_out(place: UserFolders, snapshot: Snapshot) -> None:
    secret = place.root / "secret"
    secret.write_text("SECRET")
    place.rule(".roo/rules-tpyo/a.md", "x")
    (place.workspace / ".roo/rules-tpyo/link.md").symlink_to(secret)
    (place.workspace / "AGENTS.md").symlink_to(secret)
    (place.workspace / ".kilocode").symlink_to(place.root)
    for top in (".roo/rules/.hidden", ".roo/rules/seen", ".roo/other"):
        (place.workspace / top / "a/a/a/a/a/a/a/a").mkdir(parents=True)
    deps = place.loader(trust_workspace=True).deps()
    assert "SECRET" not in told(deps)
    snapshot("rules-left-out.txt", {"notices": "\n".join(sorted(deps.notices))})


def test_each_file_is_watched(place: UserFolders) -> None:
    loader = place.loader(trust_workspace=True)
    settle(loader)
    for name in (
        *("home/custom_modes.yaml", "home/custom_modes.json", "home/permissions.yaml"),
        *("home/prices.yaml", "trusted.json", "workspace/.kilocodemodes", "workspace/.roomodes"),
        *("workspace/AGENTS.md", "workspace/.roo/rules/a.md", "home/rules/a.md", ".roo/rules/a.md"),
        *("workspace/.roo/rules-ask/deep/a.md", "workspace/.kilocode/rules-ask/a.md"),
    ):
        file = place.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
        assert loader.is_outdated(), f"{name} is new"
        settle(loader)
    (place.workspace / "other.txt").write_text("x")
    assert not loader.is_outdated()
    for changed in (file, place.home / "prices.yaml"):
        before = changed.stat()
        changed.write_text("[]")
        os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert loader.is_outdated(), "also with the size and the time that it had"
        settle(loader)


def test_one_look_serves_those_who_asked_before_it(place: UserFolders, tmp_path: Path) -> None:
    loader = place.loader(trust_workspace=True)
    settle(loader)
    before = time.monotonic()
    assert not loader.is_outdated(time.monotonic())
    (place.workspace / "AGENTS.md").write_text("new")
    assert not loader.is_outdated(before)
    now = time.monotonic()
    assert loader.is_outdated(now)
    assert loader.is_outdated(now), "until it is loaded"
    last = LastLoaded()
    (tmp_path / "modes.yaml").write_text("written while it was read")
    last.watch(tmp_path / "modes.yaml")
    assert last.has_changed()


def test_revoked_trust_and_a_broken_record_hold_no_longer(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    place.trust()
    loader = place.loader()
    assert custom(loader) == ["theirs"]
    TrustFile(place.settings().trust_file).revoke(place.workspace)
    assert custom(loader) == []
    place.trust()
    assert custom(loader) == ["theirs"]
    for text in ("[]", "{", "\x00"):
        place.settings().trust_file.write_text(text)
        for each in (loader, place.loader()):
            assert custom(each) == []
            assert "trusted.json" in each.deps().notices[0]


@pytest.mark.parametrize("trusted", [True, False])
def test_odd_names(place: UserFolders, trusted: bool) -> None:
    folder = place.workspace / ".roo/rules"
    folder.mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("x")
    (folder / "a\u202eb.md").write_text("HIDDEN")
    (folder / "a\nb.md").write_text("HIDDEN")
    deps = place.loader(trust_workspace=trusted).deps()
    assert "HIDDEN" not in told(deps)
    for notice in deps.notices:
        assert notice.isprintable()
        notice.encode()
    assert deps.notices


OWN = "slug: mine\nname: Mine\nroleDefinition: You help.\ngroups: [edit, command]\n"


def load_own(place: UserFolders, modes: str = "own/modes", **given: Any) -> AgentLoader:
    """With built-in modes of another folder, which has one: ``mine``."""
    folder = place.root / modes
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "mine.yaml").write_text(OWN)
        (folder.parent / "prompts").mkdir()
        (folder.parent / "prompts/mine.md").write_text("Help well.")
    return place.loader(modes_folder=folder, default_mode="mine", **given)


def judge_edits(deps: AgentDeps, *paths: str) -> set[str]:
    mode, tools = deps.catalog["mine"], [deps.toolbox[name].spec for name in EDITS]
    return {
        verdict(mode, tool, {"path": path}, Approvals.AUTO).kind for tool in tools for path in paths
    }


EDITS = ("write_file", "edit_file")
FILES = ("custom_modes.yaml", "permissions.yaml", "mine.yaml", "mine.md", "a/b")


def test_the_agents_own_files_in_the_workspace(place: UserFolders) -> None:
    """A command could turn it, and so say which modes there are."""
    deps = load_own(place, workspace=place.root).deps()
    own = ("own/modes/mine.yaml", "own/prompts/mine.md", "trusted.json", "Trusted.json")
    assert judge_edits(deps, "home/custom_modes.yaml", "home/new.yaml", *own) == {"deny"}
    assert judge_edits(deps, "a/home/x") == {"allow"}
    (place.workspace / "link").symlink_to(place.root / "own")
    for folder, is_restricted in (("own/modes", False), ("workspace/link/modes", True)):
        deps = load_own(place, folder).deps()
        assert (deps.seat("mine").edit_restriction is not None) is is_restricted


@pytest.mark.parametrize("where", ["home", "own/modes", "own/prompts"])
def test_the_agent_s_own_files_are_the_workspace(place: UserFolders, where: str) -> None:
    """Opened in an editor, for instance, which takes the folder as the workspace."""
    load_own(place)
    deps = load_own(place, workspace=place.root / where).deps()
    assert judge_edits(deps, *FILES) == {"deny"}
    assert deps.seat("mine").edit_restriction is not None, "a command would change it instead"


def test_another_folder_of_modes(place: UserFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an own ``_base.md`` from the time when each mode had a system prompt of its own."""
    loader, prompt = load_own(place), place.root / "own/prompts/mine.md"
    deps = loader.deps()
    assert (list(deps.catalog), deps.catalog["mine"].level) == (["mine"], Level.BUILT_IN)
    assert "Help well." in deps.seat("mine").words
    prompt.write_text("Help better.")
    assert loader.is_outdated()
    assert "Help better." in loader.deps().seat("mine").words
    (prompt.parent / "_base.md").write_text("The modes: {{ modes | join }}.")
    (prompt.parent / "_mode.md").write_text("{{ how_to_work }} That is all.")
    changed = loader.deps()
    assert (changed.system_prompt, changed.seat("mine").words) == (
        "The modes: mine.",
        "Help better. That is all.",
    )
    prompt.write_bytes(b"\xff")
    with pytest.raises(ModeFileError, match=r"prompts/mine\.md: cannot be read"):
        load_own(place).deps()
    with pytest.raises(ValidationError, match="does not point to a directory"):
        place.settings(modes_folder=place.root / "none")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string("{{ name }}")
    monkeypatch.setattr(Environment, "get_template", lambda *_: template)
    with pytest.raises(ConfigurationError, match=r"_base.md: 'name' is undefined; .* modes, rules"):
        place.loader().deps()


async def test_ignore_files_hold_anywhere_and_broken_ones_are_told(place: UserFolders) -> None:
    """Not trusted, and a mode and a rule that allow the call: nobody is even asked."""
    place.permissions.write_text("read_file: allow\nwrite_file: allow")
    place.rule("shut/in.txt", "needle")
    place.rule(".rooignore", "shut/")
    loader = place.loader(approvals="auto")
    talk = open_thread(loader.deps())
    await talk.say("read shut/in.txt\nwrite shut/in.txt: x\nsearch needle", mode="code")
    results = [message.text for message in (await talk.results()).values()]
    assert [text.partition(":")[0] for text in results[:2]] == ["InvalidCallError"] * 2
    assert "No match" in results[2]
    assert (place.workspace / "shut/in.txt").read_text() == "needle"
    place.trust()
    place.rule("AGENTS.md", "Be kind.")
    place.rule(".rooignore", "AGENTS.md")
    loader = place.loader(trust_workspace=True)
    assert "Be kind." in prompt(loader, "ask"), "what may not be opened still steers"
    assert loader.deps().notices == ()
    place.rule(".rooignore", "a" * 301)
    assert loader.is_outdated()
    (notice,) = loader.deps().notices
    assert notice.startswith(".rooignore cannot be used, so nothing in the workspace is opened")
