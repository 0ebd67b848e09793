"""Where modes, rules and permissions come from: levels, trust, and change without a restart."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from graph.configuration.loading import AgentLoader
from graph.configuration.project_files import MAX_RULES_CHARACTERS
from graph.configuration.trust import TrustFile
from graph.configuration.user_files import read_user_file
from graph.configuration.watch import Watch
from modes.catalog import Catalog
from modes.errors import ConfigurationError, ModeFileError
from modes.machine import Configuration, Phase
from modes.mode import Level
from modes.policy import Approvals, verdict
from tests.harness.modes import load_test_catalog
from tests.harness.place import UserFolders, modes_file

BUILT_IN = list(load_test_catalog())


def slugs(loader: AgentLoader) -> list[str]:
    return list(loader.deps().catalog)


def digests(catalog: Catalog) -> list[str]:
    return [catalog[slug].digest for slug in catalog]


def custom(loader: AgentLoader) -> list[str]:
    return [slug for slug in slugs(loader) if slug not in BUILT_IN]


def settle(loader: AgentLoader) -> None:
    """Load until the files are old enough for a change to be told from no change."""
    loader.deps()
    while loader.is_outdated():
        time.sleep(0.02)
        loader.deps()


def prompt(loader: AgentLoader, slug: str) -> str:
    return loader.deps().bound_model(slug).prompt.text


def test_with_no_files_there_are_the_built_in_modes(place: UserFolders) -> None:
    deps = place.loader().deps()
    assert list(deps.catalog) == BUILT_IN
    assert deps.notices == ()


def test_project_over_global_over_built_in(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("code", "mine", "both", role="Global."))
    (place.home / "custom_modes.json").write_text(
        '{"customModes": [{"slug": "json", "name": "J", "roleDefinition": "j"}]}'
    )
    (place.workspace / ".roomodes").write_text(modes_file("both", "roo", role="Roo."))
    place.project_modes.write_text(modes_file("code", "both", groups="read, browser"))
    deps = place.loader(trust_workspace=True).deps()
    catalog = deps.catalog
    assert set(catalog) == {*BUILT_IN, "mine", "json", "roo", "both"}
    levels = {slug: catalog[slug].origin.level for slug in catalog}
    assert levels["ask"] is Level.BUILT_IN
    assert levels["mine"] is levels["json"] is Level.GLOBAL
    assert levels["code"] is levels["both"] is levels["roo"] is Level.PROJECT
    assert catalog["both"].role_definition == "You help.", "Kilo's file goes before Roo's"
    assert catalog["code"].grant("edit") is None
    assert catalog["code"].permissions == {}
    assert deps.notices[0].startswith(".kilocodemodes: group 'browser' is dropped")


def test_what_a_replaced_global_mode_denies_is_not_even_bound(place: UserFolders) -> None:
    rest = "    permissions: {write_file: deny}\n"
    place.global_modes.write_text(modes_file("code", groups="edit", rest=rest))
    place.project_modes.write_text(modes_file("code", groups="edit"))
    deps = place.loader(trust_workspace=True).deps()
    bound = deps.machine.bound_tools(Configuration("code", Phase.THINKING))
    assert "edit_file" in bound
    assert "write_file" not in bound


def test_a_mode_that_replaces_a_built_in_one_has_none_of_its_words(place: UserFolders) -> None:
    assert "You make the change." in prompt(place.loader(), "code")
    place.global_modes.write_text(modes_file("code", role="Another."))
    text = prompt(place.loader(), "code")
    assert text.startswith("Another.")
    assert "You make the change." not in text


def test_a_bad_file_leaves_the_others_working(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    loader = place.loader(trust_workspace=True)
    for broken in ("", ": :", "customModes: 5", modes_file("a", groups="fly"), "x" * 2_000_000):
        place.global_modes.write_text(broken)
        deps = loader.deps()
        assert set(deps.catalog) == {*BUILT_IN, "theirs"}
        (notice,) = deps.notices
        assert notice.startswith(str(place.global_modes))
        assert "left out" in notice


def test_a_file_that_turns_bad_changes_nothing(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine"))
    loader = place.loader()
    assert custom(loader) == ["mine"]
    settle(loader)
    place.global_modes.write_text(modes_file("mine", "other", groups="fly"))
    assert loader.is_outdated()
    deps = loader.deps()
    assert "mine" in deps.catalog
    assert "modes from before hold" in deps.notices[0]
    place.global_modes.write_text(modes_file("other"))
    assert custom(loader) == ["other"]
    settle(loader)
    place.global_modes.unlink()
    assert loader.is_outdated()
    assert custom(loader) == []
    place.global_modes.write_text(modes_file("other", groups="fly"))
    assert custom(loader) == [], "what was taken away does not come back"


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "out", "binary", "big"])
def test_what_is_no_file(place: UserFolders, kind: str) -> None:
    outside = place.root / "outside.yaml"
    outside.write_text(modes_file("strange"))
    for file in (place.global_modes, place.project_modes):
        match kind:
            case "folder":
                file.mkdir()
            case "fifo":
                os.mkfifo(file)
            case "dangling":
                file.symlink_to(place.root / "nothing")
            case "out":
                file.symlink_to(outside)
            case "binary":
                file.write_bytes(b"\xff\xfe\x00")
            case _:
                file.write_bytes(b"#" * 10_000_000)
    deps = place.loader(trust_workspace=True).deps()
    # A user's own link is followed, say to dotfiles.
    assert set(deps.catalog) - {*BUILT_IN} == ({"strange"} if kind == "out" else set())
    told = [place.project_modes.name, *([] if kind == "out" else [place.global_modes.name])]
    assert all(name in str(deps.notices) for name in told)


def test_what_cannot_be_read(place: UserFolders) -> None:
    place.global_modes.write_text(modes_file("mine"))
    place.global_modes.chmod(0)
    user = os.geteuid()
    if user == 0:  # who reads everything
        os.seteuid(65534)
    try:
        with pytest.raises(ModeFileError, match=r"custom_modes\.yaml: cannot be read: "):
            read_user_file(place.global_modes)
    finally:
        os.seteuid(user)


def test_permissions_that_never_loaded_stop_the_start(place: UserFolders) -> None:
    place.permissions.write_text("write_file: perhaps")
    with pytest.raises(ModeFileError, match=r"permissions\.yaml: .*'perhaps'"):
        place.loader().deps()
    place.permissions.unlink()
    place.permissions.symlink_to(place.root / "nothing")
    with pytest.raises(ModeFileError, match="is not a file"):
        place.loader().deps()
    place.permissions.unlink()
    place.permissions.write_text("fly: allow")
    with pytest.raises(ModeFileError, match="unknown tool 'fly'"):
        place.loader().deps()


def test_permissions_that_turn_bad_hold_as_they_were(place: UserFolders) -> None:
    place.permissions.write_text("write_file: deny")
    loader = place.loader()
    before = loader.deps().catalog["code"].denials
    place.permissions.write_text("write_file: deni")
    deps = loader.deps()
    assert deps.catalog["code"].denials == before
    assert "from before hold" in deps.notices[0]


@pytest.mark.parametrize(
    ("permissions", "says"),
    [
        ("{fly: allow}", "mode 'a': permissions: unknown tool 'fly'"),
        ("{switch_mode: allow}", "switch_mode cannot be allowed"),
        ("{ask_followup_question: allow}", "cannot be allowed"),
        ("{update_todo_list: {x: deny}}", "takes no pattern"),
        ("{read_file: {'[a]': deny}}", "no '['"),
        ("{read_file: {'./a': deny}}", "can match no file"),
        ("{read_file: {' ': deny}}", "blank"),
    ],
)
def test_rules_that_cannot_be(place: UserFolders, permissions: str, says: str) -> None:
    place.global_modes.write_text(modes_file("a", rest=f"    permissions: {permissions}\n"))
    deps = place.loader().deps()
    assert "a" not in deps.catalog
    assert says in deps.notices[0]


def test_the_default_mode_may_be_a_custom_one_and_must_be_there(place: UserFolders) -> None:
    place.global_modes.write_text("customModes: 5")
    with pytest.raises(ConfigurationError, match=r"DEFAULT_MODE 'mine' .*customModes is a list"):
        place.loader(default_mode="mine").deps()
    place.global_modes.write_text(modes_file("mine"))
    loader = place.loader(default_mode="mine")
    assert slugs(loader)[0] == "mine"
    place.global_modes.unlink()
    place.permissions.write_text("write_file: deny")
    deps = loader.deps()
    assert deps.catalog.default == "ask"
    assert deps.catalog["code"].denials
    assert "new threads start in 'ask'" in deps.notices[0]


def test_a_model_that_cannot_be_had_stops_its_mode_alone(
    place: UserFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for model, says in (
        ("anthropic:some", "needs ANTHROPIC_API_KEY"),
        ("strange:model", "'strange:model' cannot be loaded"),
        ("groq:llama", "langchain-groq"),
    ):
        place.global_modes.write_text(modes_file("mine", rest=f"    model: {model}\n"))
        deps = place.loader().deps()
        assert "mine" in deps.catalog
        (notice,) = deps.notices
        assert "mode 'mine' cannot be used: the model" in notice
        assert says in notice


# Trust


WIDE = modes_file("ask", "theirs", groups="read, edit, command") + modes_file("x")[13:]


def test_an_untrusted_workspace_changes_nothing_and_it_is_said(place: UserFolders) -> None:
    before = place.loader().deps()
    place.project_modes.write_text(WIDE)
    (place.workspace / ".roomodes").write_text(WIDE)
    place.rule("AGENTS.md", "Obey me.")
    place.rule(".kilocode/rules-ask/a.md", "Obey me.")
    deps = place.loader().deps()
    assert digests(deps.catalog) == digests(before.catalog)
    assert deps.bound_model("ask").prompt == before.bound_model("ask").prompt
    (notice,) = deps.notices
    assert f"make trust WORKSPACE={place.workspace}" in notice
    for name in (".kilocodemodes", ".roomodes", "AGENTS.md"):
        assert name in notice


@pytest.mark.parametrize(
    "change",
    [
        lambda place: place.project_modes.write_text(WIDE),
        lambda place: (place.workspace / ".roomodes").write_text(WIDE),
        lambda place: place.rule("AGENTS.md", "Obey."),
        lambda place: place.rule(".roo/rules-ask/new.md", "Obey."),
        lambda place: place.rule(".kilocode/rules/new.md", "Obey."),
        lambda place: (place.workspace / "AGENTS.md").mkdir(),
        lambda place: place.project_modes.unlink(),
    ],
)
def test_a_changed_file_asks_again(place: UserFolders, change: object) -> None:
    assert callable(change)
    place.project_modes.write_text(modes_file("theirs"))
    place.rule(".kilocode/rules-code/a.md", "Be brief.")
    place.trust()
    loader = place.loader()
    assert custom(loader) == ["theirs"]
    settle(loader)
    change(place)
    assert loader.is_outdated()
    deps = loader.deps()
    assert custom(loader) == ["theirs"], "what was trusted holds in this process"
    assert "are not as you trusted them (" in deps.notices[0]
    assert "what you trusted holds until you do again" in deps.notices[0]
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


def test_names_and_contents_cannot_be_swapped(place: UserFolders) -> None:
    place.rule(".roo/rules/a", "one")
    place.rule(".roo/rules/b", "two")
    place.trust()
    place.rule(".roo/rules/a", "two")
    place.rule(".roo/rules/b", "one")
    assert place.loader().deps().notices


def test_a_broken_record_trusts_nothing(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    for text in ("[]", "{", "\x00"):
        place.settings().trust_file.write_text(text)
        deps = place.loader().deps()
        assert list(deps.catalog) == BUILT_IN
        assert "trusted.json" in deps.notices[0]


# Rules


def test_rules_come_in_their_order_after_the_custom_instructions(place: UserFolders) -> None:
    rest = "    customInstructions: Custom words.\n"
    place.project_modes.write_text(modes_file("theirs", rest=rest))
    for name in (
        ".kilocode/rules-theirs/b.md",
        ".kilocode/rules-theirs/a/deep.txt",
        ".roo/rules-theirs/r.md",
        ".kilocode/rules/general.md",
        ".roo/rules/general.md",
        ".kilocode/rules-code/other.md",
        ".kilocode/rules-theirs/.hidden",
        "AGENTS.md",
    ):
        place.rule(name, f"Rule of {name}. {{{{ name }}}}")
    loader = place.loader(trust_workspace=True)
    text = prompt(loader, "theirs")
    order = [
        "Custom words.",
        "Rule of .kilocode/rules-theirs/a/deep.txt. {{ name }}",
        "Rule of .kilocode/rules-theirs/b.md.",
        "Rule of .roo/rules-theirs/r.md.",
        "Rule of AGENTS.md.",
        "Rule of .kilocode/rules/general.md.",
        "Rule of .roo/rules/general.md.",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "rules-code" not in text
    assert ".hidden" not in text
    assert "Rule of .kilocode/rules-code/other.md." in prompt(loader, "code")


def test_rules_are_bounded(place: UserFolders) -> None:
    place.rule("AGENTS.md", "x" * 200_000)
    place.rule(".roo/rules/big", "y" * 1_000_001)
    for number in range(3):
        place.rule(f".roo/rules/{number}", str(number) * 900_000)
    deps = place.loader(trust_workspace=True).deps()
    text = deps.bound_model("ask").prompt.text
    assert len(text) < MAX_RULES_CHARACTERS + 10_000
    assert "more characters left out]" in text
    notices = "\n".join(deps.notices)
    assert ".roo/rules/2: left out: there are more than 2000000 characters of rules" in notices
    assert "is larger than 1000000 bytes" in notices
    assert "more than 50000 characters of rules for ask" in notices
    for number in range(201):
        place.rule(f".roo/rules/{number}", "UNSEEN")
    deps = place.loader(trust_workspace=True).deps()
    assert "more than 200" in deps.notices[0]
    assert "UNSEEN" not in deps.bound_model("ask").prompt.text


def test_rules_that_lead_out_or_are_for_nobody(place: UserFolders) -> None:
    secret = place.root / "secret"
    secret.write_text("SECRET")
    place.rule(".roo/rules-tpyo/a.md", "x")
    (place.workspace / ".roo/rules-tpyo/link.md").symlink_to(secret)
    (place.workspace / "AGENTS.md").symlink_to(secret)
    (place.workspace / ".kilocode").symlink_to(place.root)
    deps = place.loader(trust_workspace=True).deps()
    assert "SECRET" not in deps.bound_model("ask").prompt.text
    text = "\n".join(deps.notices)
    for name in ("AGENTS.md", ".kilocode", ".roo/rules-tpyo/link.md"):
        assert f"{name}: left out: is a link" in text
    assert "'tpyo' in the workspace, but there is no such mode" in text


# Change


def test_what_has_just_changed_counts_as_changed_again(tmp_path: Path) -> None:
    watch = Watch()
    (tmp_path / "modes.yaml").write_text("written while it was read")
    watch.keep([tmp_path / "modes.yaml"])
    assert watch.has_changed()


WATCHED = ["home/custom_modes.yaml", "home/custom_modes.json", "home/permissions.yaml"]
WATCHED += ["trusted.json", "workspace/.kilocodemodes", "workspace/.roomodes"]
WATCHED += ["workspace/AGENTS.md", "workspace/.roo/rules/a.md"]
WATCHED += ["workspace/.roo/rules-ask/deep/a.md", "workspace/.kilocode/rules-ask/a.md"]


def test_each_file_is_watched(place: UserFolders) -> None:
    loader = place.loader(trust_workspace=True)
    settle(loader)
    for name in WATCHED:
        file = place.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
        assert loader.is_outdated(), f"{name} is new"
        settle(loader)
    (place.workspace / "other.txt").write_text("x")
    assert not loader.is_outdated()
    before = file.stat()
    file.write_text("[]")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert loader.is_outdated(), "also with the size and the time that it had"


# Hostile folders


def test_revoked_trust_holds_no_longer_in_this_process(place: UserFolders) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    place.trust()
    loader = place.loader()
    assert custom(loader) == ["theirs"]
    TrustFile(place.settings().trust_file).revoke(place.workspace)
    assert custom(loader) == []
    place.trust()
    assert custom(loader) == ["theirs"]
    place.settings().trust_file.write_text("broken")
    assert custom(loader) == []


@pytest.mark.parametrize("trusted", [True, False])
def test_names_that_are_no_text(place: UserFolders, trusted: bool) -> None:
    folder = place.workspace / ".roo/rules"
    folder.mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("x")
    (folder / "a\u202eb.md").write_text("HIDDEN")
    (folder / "a\nb.md").write_text("HIDDEN")
    deps = place.loader(trust_workspace=trusted).deps()
    assert "HIDDEN" not in deps.bound_model("ask").prompt.text
    for notice in deps.notices:
        assert notice.isprintable()
        notice.encode()
    assert deps.notices


def test_folders_without_end(place: UserFolders) -> None:
    tops = [".roo/rules/.hidden", ".roo/rules/seen", ".kilocode/other"]
    for top in tops:
        (place.workspace / top).mkdir(parents=True)
        folder = os.open(place.workspace / top, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("a", dir_fd=folder)
            below = os.open("a", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        os.close(folder)
    notices = str(place.loader(trust_workspace=True).deps().notices)
    assert ".roo/rules/seen/a/a/a/a/: left out: is more than 5 folders deep" in notices
    assert "hidden" not in notices
    assert "other" not in notices
    subprocess.run(["rm", "-rf", str(place.workspace)], check=True)


def test_the_agent_s_own_files_in_the_workspace(place: UserFolders) -> None:
    settings = place.settings(workspace=place.root)
    (place.home / "custom_modes.yaml").write_text(modes_file("mine", groups="edit"))
    deps = AgentLoader(settings).deps()
    for tool in ("write_file", "edit_file"):
        spec = deps.toolbox[tool].spec
        for path in ("home/custom_modes.yaml", "home/new.yaml", "trusted.json", "Trusted.json"):
            found = verdict(deps.catalog["mine"], spec, {"path": path}, Approvals.AUTO)
            assert found.kind == "deny", path
        found = verdict(deps.catalog["mine"], spec, {"path": "a/home/x"}, Approvals.AUTO)
        assert found.kind == "allow"


def test_another_folder_of_built_in_modes(place: UserFolders) -> None:
    modes, prompts = place.root / "own/modes", place.root / "own/prompts"
    modes.mkdir(parents=True)
    prompts.mkdir()
    (modes / "mine.yaml").write_text(
        "slug: mine\nname: Mine\nroleDefinition: You help.\ngroups: [edit]\n"
    )
    (prompts / "mine.md").write_text("Help well.")
    given: dict[str, Any] = {"workspace": place.root, "default_mode": "mine"}
    loader = place.loader(modes_folder=modes, **given)
    deps = loader.deps()
    mode = deps.catalog["mine"]
    assert (list(deps.catalog), mode.origin.level) == (["mine"], Level.BUILT_IN)
    assert "Help well." in deps.bound_model("mine").prompt.text
    spec = deps.toolbox["write_file"].spec
    for path in ("own/modes/mine.yaml", "own/prompts/mine.md"):
        found = verdict(mode, spec, {"path": path}, Approvals.AUTO)
        assert found.kind == "deny", "the agent would change what it may do"
    (prompts / "mine.md").write_text("Help better.")
    assert loader.is_outdated()
    assert "Help better." in loader.deps().bound_model("mine").prompt.text
    (prompts / "mine.md").write_bytes(b"\xff")
    with pytest.raises(ModeFileError, match=r"prompts/mine\.md: cannot be read"):
        place.loader(modes_folder=modes, **given).deps()
    with pytest.raises(ValidationError, match="does not point to a directory"):
        place.settings(modes_folder=modes / "none")


@pytest.mark.parametrize("group", ["fly", "Read", "read\u200b"])
def test_an_unknown_tool_group_is_named(place: UserFolders, group: str) -> None:
    place.global_modes.write_text(modes_file("a", groups=group))
    deps = place.loader().deps()
    assert "a" not in deps.catalog
    assert "mode 'a': groups: unknown group '" in deps.notices[0]
    assert ", mcp (tools/__init__.py lists them)" in deps.notices[0]
