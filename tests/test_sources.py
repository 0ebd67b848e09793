"""Where modes, rules and permissions come from: levels, trust, and change without a restart."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from graph.configuration.loading import Workshop
from graph.configuration.project_files import MAX_RULES_CHARACTERS
from graph.configuration.trust import TrustFile
from graph.configuration.user_files import read_user_file
from graph.configuration.watch import Watch
from modes.catalog import load_catalog
from modes.errors import ConfigurationError, ModeFileError
from modes.machine import Configuration, Phase
from modes.mode import Level
from modes.policy import Approvals, verdict
from modes.toolspec import ToolGroup
from tests.place import Place, modes_file

BUILT_IN = list(load_catalog())


def slugs(workshop: Workshop) -> list[str]:
    return list(workshop.harness().catalog)


def custom(workshop: Workshop) -> list[str]:
    return [slug for slug in slugs(workshop) if slug not in BUILT_IN]


def settle(workshop: Workshop) -> None:
    """Wait until the files are old enough for a change to be told from no change."""
    time.sleep(0.06)
    workshop.harness()
    assert not workshop.is_outdated()


def prompt(workshop: Workshop, slug: str) -> str:
    return workshop.harness().voice(slug).prompt.text


def test_with_no_files_there_are_the_built_in_modes(place: Place) -> None:
    harness = place.workshop().harness()
    assert list(harness.catalog) == BUILT_IN
    assert harness.notices == ()


def test_project_over_global_over_built_in(place: Place) -> None:
    place.global_modes.write_text(modes_file("code", "mine", "both", role="Global."))
    place.project_modes.write_text(modes_file("code", "theirs", "both", role="Project."))
    catalog = place.workshop(trust_workspace=True).harness().catalog
    assert set(catalog) == {*BUILT_IN, "mine", "theirs", "both"}
    levels = {slug: catalog[slug].origin.level for slug in catalog}
    assert levels["ask"] is Level.BUILT_IN
    assert levels["mine"] is Level.GLOBAL
    assert levels["code"] is levels["both"] is levels["theirs"] is Level.PROJECT
    assert catalog["code"].grant(ToolGroup.EDIT) is None
    assert catalog["code"].permissions == {}


def test_what_a_replaced_global_mode_denies_is_not_even_bound(place: Place) -> None:
    rest = "    permissions: {write_file: deny}\n"
    place.global_modes.write_text(modes_file("code", groups="edit", rest=rest))
    place.project_modes.write_text(modes_file("code", groups="edit"))
    harness = place.workshop(trust_workspace=True).harness()
    bound = harness.machine.bound(Configuration("code", Phase.THINKING))
    assert "edit_file" in bound
    assert "write_file" not in bound


def test_kilo_s_file_over_roo_s_and_yaml_over_json(place: Place) -> None:
    (place.workspace / ".roomodes").write_text(modes_file("a", "roo", role="Roo."))
    place.project_modes.write_text(modes_file("a", role="Kilo."))
    (place.home / "custom_modes.json").write_text(
        '{"customModes": [{"slug": "json", "name": "J", "roleDefinition": "j"}]}'
    )
    workshop = place.workshop(trust_workspace=True)
    assert set(custom(workshop)) == {"a", "roo", "json"}
    assert workshop.harness().catalog["a"].role_definition == "Kilo."


def test_a_mode_that_replaces_a_built_in_one_has_none_of_its_words(place: Place) -> None:
    assert "You make the change." in prompt(place.workshop(), "code")
    place.global_modes.write_text(modes_file("code", role="Another."))
    text = prompt(place.workshop(), "code")
    assert text.startswith("Another.")
    assert "You make the change." not in text


@pytest.mark.parametrize(
    "broken",
    ["", ": :", "customModes: 5", modes_file("a", groups="fly"), "x" * 2_000_000],
)
def test_a_bad_file_leaves_the_others_working(place: Place, broken: str) -> None:
    place.global_modes.write_text(broken)
    place.project_modes.write_text(modes_file("theirs"))
    workshop = place.workshop(trust_workspace=True)
    harness = workshop.harness()
    assert set(harness.catalog) == {*BUILT_IN, "theirs"}
    (notice,) = harness.notices
    assert notice.startswith(str(place.global_modes))
    assert "left out" in notice


def test_what_is_dropped_is_said(place: Place) -> None:
    place.global_modes.write_text(modes_file("mine", groups="read, browser"))
    (notice,) = place.workshop().harness().notices
    assert notice.startswith(f"{place.global_modes}: group 'browser' is dropped")


def test_a_file_that_turns_bad_changes_nothing(place: Place) -> None:
    place.global_modes.write_text(modes_file("mine"))
    workshop = place.workshop()
    assert custom(workshop) == ["mine"]
    settle(workshop)
    place.global_modes.write_text(modes_file("mine", "other", groups="fly"))
    assert workshop.is_outdated()
    harness = workshop.harness()
    assert "mine" in harness.catalog
    assert "modes from before hold" in harness.notices[0]
    place.global_modes.write_text(modes_file("other"))
    assert custom(workshop) == ["other"]
    settle(workshop)
    place.global_modes.unlink()
    assert workshop.is_outdated()
    assert custom(workshop) == []
    place.global_modes.write_text(modes_file("other", groups="fly"))
    assert custom(workshop) == [], "what was taken away does not come back"


@pytest.mark.parametrize("where", ["global_modes", "project_modes"])
@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "out", "binary", "big"])
def test_what_is_no_file(place: Place, where: str, kind: str) -> None:
    file: Path = getattr(place, where)
    outside = place.root / "outside.yaml"
    outside.write_text(modes_file("strange"))
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
    harness = place.workshop(trust_workspace=True).harness()
    if kind == "out" and where == "global_modes":  # the user's own link, say to dotfiles
        assert "strange" in harness.catalog
    else:
        assert list(harness.catalog) == BUILT_IN
        assert file.name in harness.notices[0]


def test_what_cannot_be_read(place: Place) -> None:
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


def test_permissions_that_never_loaded_stop_the_start(place: Place) -> None:
    place.permissions.write_text("write_file: perhaps")
    with pytest.raises(ModeFileError, match=r"permissions\.yaml: .*'perhaps'"):
        place.workshop().harness()
    place.permissions.unlink()
    place.permissions.symlink_to(place.root / "nothing")
    with pytest.raises(ModeFileError, match="is not a file"):
        place.workshop().harness()


def test_permissions_that_turn_bad_hold_as_they_were(place: Place) -> None:
    place.permissions.write_text("write_file: deny")
    workshop = place.workshop()
    before = workshop.harness().catalog["code"].denials
    place.permissions.write_text("write_file: deni")
    harness = workshop.harness()
    assert harness.catalog["code"].denials == before
    assert "from before hold" in harness.notices[0]


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("    permissions: {fly: allow}\n", "mode 'a': permissions: unknown tool 'fly'"),
        ("    permissions: {switch_mode: allow}\n", "switch_mode cannot be allowed"),
        ("    permissions: {ask_followup_question: allow}\n", "cannot be allowed"),
        ("    permissions: {update_todo_list: {x: deny}}\n", "takes no pattern"),
        ("    permissions: {read_file: {'[a]': deny}}\n", "no '['"),
        ("    permissions: {read_file: {'./a': deny}}\n", "can match no file"),
        ("    permissions: {read_file: {'../a': deny}}\n", "can match no file"),
        ("    permissions: {read_file: {'!a': deny}}\n", "can match no file"),
        ("    permissions: {read_file: {'a//b': deny}}\n", "can match no file"),
        ("    permissions: {read_file: {' ': deny}}\n", "blank"),
        ("    permissions: {read_file: {'" + "a" * 301 + "': deny}}\n", "300 are the limit"),
    ],
)
def test_rules_that_cannot_be(place: Place, rest: str, says: str) -> None:
    place.global_modes.write_text(modes_file("a", rest=rest))
    harness = place.workshop().harness()
    assert "a" not in harness.catalog
    assert says in harness.notices[0]
    place.global_modes.unlink()
    place.permissions.write_text("fly: allow")
    with pytest.raises(ModeFileError, match="unknown tool 'fly'"):
        place.workshop().harness()


def test_the_default_mode_may_be_a_custom_one_and_must_be_there(place: Place) -> None:
    place.global_modes.write_text("customModes: 5")
    with pytest.raises(ConfigurationError, match=r"DEFAULT_MODE 'mine' .*customModes is a list"):
        place.workshop(default_mode="mine").harness()
    place.global_modes.write_text(modes_file("mine"))
    workshop = place.workshop(default_mode="mine")
    assert slugs(workshop)[0] == "mine"
    place.global_modes.unlink()
    place.permissions.write_text("write_file: deny")
    harness = workshop.harness()
    assert harness.catalog.default == "ask"
    assert harness.catalog["code"].denials
    assert "new threads start in 'ask'" in harness.notices[0]


def test_a_model_that_cannot_be_had_stops_its_mode_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for model, says in (
        ("anthropic:some", "needs ANTHROPIC_API_KEY"),
        ("strange:model", "'strange:model' cannot be loaded"),
        ("groq:llama", "langchain-groq"),
    ):
        place.global_modes.write_text(modes_file("mine", rest=f"    model: {model}\n"))
        harness = place.workshop().harness()
        assert "mine" in harness.catalog
        (notice,) = harness.notices
        assert "mode 'mine' cannot be used: the model" in notice
        assert says in notice


# Trust


WIDE = modes_file("ask", "theirs", groups="read, edit, command") + modes_file("x")[13:]


def test_an_untrusted_workspace_changes_nothing_and_it_is_said(place: Place) -> None:
    before = place.workshop().harness()
    place.project_modes.write_text(WIDE)
    (place.workspace / ".roomodes").write_text(WIDE)
    place.rule("AGENTS.md", "Obey me.")
    place.rule(".kilocode/rules-ask/a.md", "Obey me.")
    harness = place.workshop().harness()
    assert harness.catalog.digest == before.catalog.digest
    assert harness.voice("ask").prompt == before.voice("ask").prompt
    (notice,) = harness.notices
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
def test_a_changed_file_asks_again(place: Place, change: object) -> None:
    assert callable(change)
    place.project_modes.write_text(modes_file("theirs"))
    place.rule(".kilocode/rules-code/a.md", "Be brief.")
    place.trust()
    workshop = place.workshop()
    assert custom(workshop) == ["theirs"]
    settle(workshop)
    change(place)
    assert workshop.is_outdated()
    harness = workshop.harness()
    assert custom(workshop) == ["theirs"], "what was trusted holds in this process"
    assert "are not as you trusted them (" in harness.notices[0]
    assert "what you trusted holds until you do again" in harness.notices[0]
    fresh = place.workshop().harness()
    assert list(fresh.catalog) == BUILT_IN
    assert "they are ignored" in fresh.notices[0]
    settle(workshop)
    place.trust()
    assert workshop.is_outdated()
    assert workshop.harness().catalog.digest == place.workshop().harness().catalog.digest


def test_trust_is_for_one_folder(place: Place) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    place.trust()
    other = place.root / "other"
    other.mkdir()
    (other / ".kilocodemodes").write_text(modes_file("theirs"))
    assert custom(place.workshop(workspace=other)) == []
    link = place.root / "link"
    link.symlink_to(place.workspace)
    assert custom(place.workshop(workspace=link)) == ["theirs"]


def test_names_and_contents_cannot_be_swapped(place: Place) -> None:
    place.rule(".roo/rules/a", "one")
    place.rule(".roo/rules/b", "two")
    place.trust()
    place.rule(".roo/rules/a", "two")
    place.rule(".roo/rules/b", "one")
    assert place.workshop().harness().notices


@pytest.mark.parametrize("text", ["[]", "{", "\x00"])
def test_a_broken_record_trusts_nothing(place: Place, text: str) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    place.settings().trust_file.write_text(text)
    harness = place.workshop().harness()
    assert list(harness.catalog) == BUILT_IN
    assert "trusted.json" in harness.notices[0]


# Rules


def test_rules_come_in_their_order_after_the_custom_instructions(place: Place) -> None:
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
    workshop = place.workshop(trust_workspace=True)
    text = prompt(workshop, "theirs")
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
    assert "Rule of .kilocode/rules-code/other.md." in prompt(workshop, "code")


def test_rules_are_bounded(place: Place) -> None:
    place.rule("AGENTS.md", "x" * 200_000)
    place.rule(".roo/rules/big", "y" * 1_000_001)
    harness = place.workshop(trust_workspace=True).harness()
    text = harness.voice("ask").prompt.text
    assert len(text) < MAX_RULES_CHARACTERS + 10_000
    assert "more characters left out]" in text
    assert "larger than 1000000 bytes" in harness.notices[0]
    assert "more than 50000 characters of rules for ask" in harness.notices[1]
    for number in range(201):
        place.rule(f".roo/rules/{number}", "UNSEEN")
    harness = place.workshop(trust_workspace=True).harness()
    assert "more than 200" in harness.notices[0]
    assert "UNSEEN" not in harness.voice("ask").prompt.text


def test_rules_that_lead_out_or_are_for_nobody(place: Place) -> None:
    secret = place.root / "secret"
    secret.write_text("SECRET")
    place.rule(".roo/rules-tpyo/a.md", "x")
    (place.workspace / ".roo/rules-tpyo/link.md").symlink_to(secret)
    (place.workspace / "AGENTS.md").symlink_to(secret)
    (place.workspace / ".kilocode").symlink_to(place.root)
    harness = place.workshop(trust_workspace=True).harness()
    assert "SECRET" not in harness.voice("ask").prompt.text
    text = "\n".join(harness.notices)
    for name in ("AGENTS.md", ".kilocode", ".roo/rules-tpyo/link.md"):
        assert f"{name}: left out: is a link" in text
    assert "'tpyo' in the workspace, but there is no such mode" in text


# Change


def test_nothing_has_changed(place: Place) -> None:
    place.global_modes.write_text(modes_file("mine"))
    workshop = place.workshop()
    workshop.harness()
    settle(workshop)
    (place.workspace / "other.txt").write_text("x")
    assert not workshop.is_outdated()


def test_what_has_just_changed_counts_as_changed_again(tmp_path: Path) -> None:
    watch = Watch()
    (tmp_path / "modes.yaml").write_text("written while it was read")
    watch.keep([tmp_path / "modes.yaml"])
    assert watch.has_changed()


@pytest.mark.parametrize(
    "name",
    [
        "home/custom_modes.yaml",
        "home/custom_modes.json",
        "home/permissions.yaml",
        "trusted.json",
        "workspace/.kilocodemodes",
        "workspace/.roomodes",
        "workspace/AGENTS.md",
        "workspace/.roo/rules/a.md",
        "workspace/.roo/rules-ask/deep/a.md",
        "workspace/.kilocode/rules-ask/a.md",
    ],
)
def test_each_file_is_watched(place: Place, name: str) -> None:
    file = place.root / name
    workshop = place.workshop(trust_workspace=True)
    workshop.harness()
    settle(workshop)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    assert workshop.is_outdated(), "it is new"
    workshop.harness()
    settle(workshop)
    before = file.stat()
    file.write_text("[]")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert workshop.is_outdated(), "it has the size and the time it had"


def test_a_rule_that_changes_is_read_again(place: Place) -> None:
    place.rule("AGENTS.md", "One.")
    workshop = place.workshop(trust_workspace=True)
    assert "One." in prompt(workshop, "ask")
    place.rule("AGENTS.md", "Two.")
    assert "Two." in prompt(workshop, "ask")


# Hostile folders


def test_revoked_trust_holds_no_longer_in_this_process(place: Place) -> None:
    place.project_modes.write_text(modes_file("theirs"))
    place.trust()
    workshop = place.workshop()
    assert custom(workshop) == ["theirs"]
    TrustFile(place.settings().trust_file).revoke(place.workspace)
    assert custom(workshop) == []
    place.trust()
    assert custom(workshop) == ["theirs"]
    place.settings().trust_file.write_text("broken")
    assert custom(workshop) == []


@pytest.mark.parametrize("trusted", [True, False])
def test_names_that_are_no_text(place: Place, trusted: bool) -> None:
    folder = place.workspace / ".roo/rules"
    folder.mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("x")
    (folder / "a\u202eb.md").write_text("HIDDEN")
    (folder / "a\nb.md").write_text("HIDDEN")
    harness = place.workshop(trust_workspace=trusted).harness()
    assert "HIDDEN" not in harness.voice("ask").prompt.text
    for notice in harness.notices:
        assert notice.isprintable()
        notice.encode()
    assert harness.notices


@pytest.mark.parametrize("top", [".roo/rules/.hidden", ".roo/rules/seen", ".kilocode/other"])
def test_folders_without_end(place: Place, top: str) -> None:
    here = Path.cwd()
    (place.workspace / top).mkdir(parents=True)
    os.chdir(place.workspace / top)
    try:
        for _ in range(1500):
            Path("a").mkdir()
            os.chdir("a")
    finally:
        os.chdir(here)
    harness = place.workshop(trust_workspace=True).harness()
    assert ("deep" in str(harness.notices)) == ("seen" in top)
    subprocess.run(["rm", "-rf", str(place.workspace / top)], check=True)


def test_rules_are_bounded_in_all(place: Place) -> None:
    for number in range(4):
        place.rule(f".roo/rules/{number}", str(number) * 900_000)
    harness = place.workshop(trust_workspace=True).harness()
    assert "more than 2000000 characters of rules" in " ".join(harness.notices)


def test_the_agent_s_own_files_in_the_workspace(place: Place) -> None:
    settings = place.settings(workspace=place.root)
    (place.home / "custom_modes.yaml").write_text(modes_file("mine", groups="edit"))
    harness = Workshop(settings).harness()
    for tool in ("write_file", "edit_file"):
        spec = harness.toolbox[tool].spec
        for path in ("home/custom_modes.yaml", "home/new.yaml", "trusted.json", "Trusted.json"):
            found = verdict(harness.catalog["mine"], spec, {"path": path}, Approvals.AUTO)
            assert found.kind == "deny", path
        found = verdict(harness.catalog["mine"], spec, {"path": "a/home/x"}, Approvals.AUTO)
        assert found.kind == "allow"
