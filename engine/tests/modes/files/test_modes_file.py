"""Modes files as users and strangers write them: what loads, what is refused, and the message."""

import re
from typing import Any

import pytest

from modeshift.modes.errors import ModeFileError
from modeshift.modes.files import parse_modes, parse_permissions
from modeshift.testing.plugin import Snapshot
from tests.harness.place import modes_file
from tests.tables import rows

HEAD = "customModes:\n- slug: a\n  name: A\n  roleDefinition: r\n"
MODE = HEAD + "  groups: [read]\n"
AS_JSON = """
{"customModes": [{"slug": "a", "name": "A", "roleDefinition": "r", "source": "project",
 "iconName": "codicon-eye", "whenToUse": "w", "description": "d", "customInstructions": "c",
 "groups": ["read", ["edit", {"fileRegex": "\\\\.md$", "description": "Markdown"}]]}]}
"""
ALIASES = "customModes:\n- &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@rows(
    "text",
    AS_JSON,
    "\ufeff" + AS_JSON,
    AS_JSON.replace("\n", "\r\n\t"),
    "{customModes: [{slug: a, name: A, roleDefinition: r, groups: []}]}",
    MODE + "  customInstructions: |\n    one\n    two\n",
    HEAD + "  groups: &all [read, edit]\n- {slug: b, name: B, roleDefinition: r, groups: *all}",
)
def test_files_of_kilo_and_roo_load_as_they_are(text: str) -> None:
    parsed = parse_modes(text, "f")
    assert parsed.modes[0].slug == "a"
    assert not parsed.warnings


def test_every_field_arrives() -> None:
    (mode,) = parse_modes(AS_JSON, "f").modes
    assert (mode.when_to_use, mode.description, mode.custom_instructions) == ("w", "d", "c")
    assert [grant.file_regex for grant in mode.groups] == [None, r"\.md$"]
    assert mode.grant("edit") is mode.groups[1]
    assert mode.grant("mcp") is None
    rules = "[{relativePath: 'a.md\u2028b', content: ' One. ', x: y}, {relativePath: c}]"
    parsed = parse_modes(MODE + f"  customInstructions: I.\n  rulesFiles: {rules}", "f")
    assert not parsed.warnings
    assert parsed.modes[0].instructions == "I.\n\n## a.md b\n\nOne."


@rows(
    "fields purpose",
    ("whenToUse: W\n  description: D", "W"),
    ("whenToUse: ' '\n  description: D", "D"),
    ("source: project", "A. r"),
    ("source: project|You write, e.g.\n    this. And more.", "A. You write, e.g."),
    ("source: project|Does it cost 1.50? No.", "A. Does it cost 1.50?"),
    ("source: project|你是编辑。很好。", "A. 你是编辑。"),
    ("source: project|" + "a " * 500, "A. " + ("a " * 100).strip() + " ..."),
)
def test_what_the_model_is_told_of_a_mode_to_choose(fields: str, purpose: str) -> None:
    keys, _, role = fields.partition("|")
    text = MODE.replace("roleDefinition: r", f"roleDefinition: {role or 'r'}")
    (mode,) = parse_modes(f"{text}  {keys}", "f").modes
    assert mode.purpose == purpose


@pytest.mark.parametrize("group", ["browser", "[browser, {}]", "modes"])
def test_groups_of_older_files_are_dropped_and_it_is_said(group: str) -> None:
    modes = HEAD + f"  groups: [read, {group}]\n" + HEAD[13:].replace("slug: a", "slug: b")
    parsed = parse_modes(modes + f"  groups: [{group}, {group}]", "f")
    assert [grant.group for grant in parsed.modes[0].groups] == ["read"]
    (warning,) = parsed.warnings
    assert warning.startswith("f: group '")
    assert warning.endswith("(in a, b)")


@pytest.mark.parametrize("slug", ["on", "no", "7", "1e3", "2026-01-01", "null", "0x1"])
def test_a_slug_is_text_whatever_yaml_takes_it_for(slug: str) -> None:
    (mode,) = parse_modes(MODE.replace("slug: a", f"slug: {slug}"), "f").modes
    assert mode.slug == slug


def test_a_broken_file(snapshot: Snapshot) -> None:
    told: dict[str, str] = {}
    for text in (
        *("", ": : :", "\x00", "- slug: b", "modes: []\nmore: 1", "customModes: a"),
        *(HEAD + "  slug: b", '{"customModes": [], "customModes": []}'),
        HEAD + '  whenToUse: "\\ud800"',
        '{"customModes": [{"slug": "a", "name": "A", "roleDefinition": "\\ud800"}]}',
        *("a: &a [*a]", "customModes: " + "[" * 5000, "customModes:\n" + "- b\n" * 200_000),
        "customModes:\n" + "- a\n" * 1001,
        "x: &x " + "y" * 100_000 + "\ny: [" + "*x, " * 1000 + "]",
        "".join(f"k{number}: 1\n" for number in range(2_000)) + "k0: 2",
        *(ALIASES, '!!python/object/apply:os.system ["true"]'),
        *("customModes: []\n---\ncustomModes: []", "customModes: []\n# " + "x" * 10_000_000),
    ):
        with pytest.raises(ModeFileError) as caught:
            parse_modes(text, "f")
        check(told, text, str(caught.value))
    snapshot("modes-files.txt", told)
    with pytest.raises(ModeFileError, match=r"^f: "):  # each Python says it otherwise
        parse_modes('{"customModes": ' * 50_000, "f")


def check(told: dict[str, str], text: str, problem: str) -> None:
    """Keep what is told of a file: its name, and what is wrong, on one line."""
    assert problem.startswith("f: ")
    assert "\n" not in problem
    assert len(problem) < 1500
    lines = [line for line in text.splitlines() if line not in MODE.splitlines()]
    heading = "\n".join(lines)[:100]
    assert heading not in told
    told[heading] = problem


SLUGS = ('"a\\nb"', "__class__", "ä", "٣", "''", "[]", "a" * 101)
NAMES = ("a" * 101, '"A\\u2028B"', '"A\\u2800B"', '"A\\ufe00B"', "''", '" \\t"', '"A\\nB"')
NEIGHBOUR = "{slug: z, name: Z, roleDefinition: r, groups: [read]}\n"


def test_a_broken_mode_is_refused_and_never_its_neighbours(snapshot: Snapshot) -> None:
    told: dict[str, str] = {}
    for text in (
        "customModes: [a]",
        "customModes: [{}]",
        modes_file("a", "a"),
        *(MODE.replace("slug: a", f"slug: {slug}") for slug in SLUGS),
        *(MODE.replace("name: A", f"name: {name}") for name in NAMES),
        MODE.replace("roleDefinition: r", "roleDefinition: '  '"),
        *(HEAD.replace("  roleDefinition: r\n", "  groups: []\n"), HEAD + "  groups: ['']"),
        *(HEAD + "  groups: [read, read]", HEAD + "  groups: read"),
        HEAD + "  groups: [[edit, {fileRegex: '('}]]",
        HEAD + "  groups: [[edit, {fileRegex: 'a{99999999}'}]]",
        HEAD + "  groups: [[edit, {fileRegex: '((a{999}){999}){999}'}]]",
        HEAD + f"  groups: [[edit, {{fileRegex: '{'a' * 1001}'}}]]",
        HEAD + "  groups: [[edit, {fileRegexp: x}]]",
        HEAD + "  groups: [[edit, {fileRegex: [5]}]]",
        HEAD + "  groups: [[edit, {fileRegex: }]]",
        '{"customModes": [{"slug": "a", "name": "A", "roleDefinition": "r", '
        '"groups": [["edit", {"fileRegex": null}]]}]}',
        HEAD + "  groups: [[read, {group: command}]]",
        HEAD + "  groups: [" + "read, " * 500 + "]",
        HEAD + "  groups: [[edit, {fileRegex: '(?x)a{ 9999999}'}]]",
        HEAD + "  groups: [[edit, {fileRegex: 'a(?R)?b'}]]",
        HEAD + "  groups: [[edit, {fileRegex: '(a)(?1)'}]]",
        *(HEAD + "  groups: [[read, {fileRegex: x}]]", HEAD + "  groups: [[edit]]"),
        *(HEAD + "  groups: [[edit, {}, {}]]", HEAD, MODE + "  permission: {edit: deny}"),
        *(MODE + "  Permisions: {edit: deny}", MODE + "  permitions: {edit: deny}"),
        MODE + "  permissionMode: plan",
        HEAD + "  groups: [[edit, {description: x, files: [a]}]]",
        *(MODE + "  rulesFiles: [a]", MODE + "  permissions: {write_file: maybe}"),
        *(MODE + "  permissions: [allow]", MODE + "  permissions: {write_file: {'': allow}}"),
    ):
        start = re.match("customModes:\n *", text)
        beside = f"{start[0]}- {NEIGHBOUR}{text[len('customModes:') + 1 :]}" if start else text
        parsed = parse_modes(beside, "f")
        assert [mode.slug for mode in parsed.modes] == ["z"] * bool(start)
        (problem,) = parsed.refused.values()
        check(told, text, problem)
    snapshot("modes-refused.txt", told)
    deep = f"{HEAD}  groups: [[edit, {{fileRegex: '{'(' * 450}a{')' * 450}'}}]]"
    assert "recursion" in str(parse_modes(deep, "f").refused)  # each Python says it otherwise


def test_what_means_nothing_is_dropped_and_other_blanks_are_read() -> None:
    text = f"{MODE}  tools: [read_file]\n  origin: {{level: built-in}}\n  source: global\n"
    second = MODE[13:].replace("slug: a", "slug: b")
    parsed = parse_modes(f"{text}{second}  tools: []\nversion: 1", "f")
    assert [mode.slug for mode in parsed.modes] == ["a", "b"]
    assert sorted(parsed.warnings) == [
        "f: the key 'origin' is dropped: it means nothing here (in a)",
        "f: the key 'tools' is dropped: it means nothing here (in a, b)",
        "f: the key 'version' is dropped: it means nothing here (in the file)",
    ]
    many = parse_modes(MODE + "".join(f"  k{n}: 1\n" for n in range(100)), "f").warnings
    assert (len(many), many[-1]) == (21, "f: 80 more keys are dropped")
    rest = "  permissions:\n    read_file:\n      'a\u00a0b\u200b': deny\n"
    text = (MODE + rest).replace("  ", "\u00a0 ").replace("- slug: a", "\u200b-\u00a0slug:\u00a0a")
    (mode,) = parse_modes(text, "f").modes
    assert mode.permissions == {"read_file": {"a\u00a0b\u200b": "deny"}}
    parsed = parse_modes("customModePrompts: {ask: {roleDefinition: You., groups: [edit]}}", "f")
    assert (parsed.modes, parsed.warnings) == ((), ())
    assert next(iter(parsed.prompts["ask"])) == ("role_definition", "You.")
    assert parse_modes("customModes:\ncustomModePrompts:\n", "f").modes == ()
    parsed = parse_modes(MODE + "customModePrompts: {ask: {roleDefinition: [1]}}", "f")
    assert len(parsed.modes) == 1
    assert "'customModePrompts' is dropped: ask.roleDefinition: is not text" in parsed.warnings[0]


@pytest.mark.parametrize(
    "key", ["version", "revision", "session", "mission", "missions", "persona", "provisions"]
)
def test_a_key_that_only_sounds_like_permissions_loses_no_mode(key: str) -> None:
    parsed = parse_modes(f"{MODE}  {key}: 1\n", "f")
    assert [mode.slug for mode in parsed.modes] == ["a"]
    assert parsed.warnings == (f"f: the key '{key}' is dropped: it means nothing here (in a)",)


@rows("model",
'""', "claude-sonnet-4", "anthropic/claude-sonnet-4", "deepseek/deepseek-r1:free", "5",
     "{provider: openai, name: gpt}",
)  # fmt: skip
def test_a_model_of_another_program_is_dropped_and_it_is_said(model: str) -> None:
    parsed = parse_modes(f"{MODE}  model: {model}\n", "f")
    assert [mode.model for mode in parsed.modes] == [None]
    (notice,) = parsed.warnings
    assert notice.startswith("f: the model ")
    assert notice.endswith("neither 'offline' nor 'provider:name'; MODEL is used (in a)")
    for ours in ("offline", "ollama:qwen3:8b", "replay:cassettes/a", "openrouter:a/b:free"):
        parsed = parse_modes(f"{MODE}  model: {ours}\n", "f")
        assert ([mode.model for mode in parsed.modes], parsed.warnings) == ([ours], ())


@rows(
    "copied name",
    ("\u00a0Docs\u00a0writer\u200b", "Docs writer"),
    ("Co\u200dde\ufeff", "Code"),
    ("👩\u200d💻 Coder", "👩\u200d💻 Coder"),
    ("' Docs '", "Docs"),
    ("|\n      Docs", "Docs"),
)
def test_names_that_were_copied_from_a_page_are_cleaned(copied: str, name: str) -> None:
    text = MODE.replace("slug: a", "slug: 'a\u200b '").replace("name: A", f"name: {copied}")
    (mode,) = parse_modes(text.replace("[read]", "['read\u00a0', 'browser\u200b']"), "f").modes
    assert (mode.slug, mode.name, [grant.group for grant in mode.groups]) == ("a", name, ["read"])


@rows(
    "text expected",
    ("", {}),
    ("write_file: ask", {"write_file": {"*": "ask"}}),
    ('{"write_file": {"a": "deny"}}', {"write_file": {"a": "deny"}}),
    *((text, None) for text in ("- a", "write_file: no", "write_file:", "x: {a: {b: deny}}")),
)
def test_permissions(text: str, expected: dict[str, Any] | None) -> None:
    if expected is None:
        with pytest.raises(ModeFileError, match=r"^f: "):
            parse_permissions(text, "f")
    else:
        assert parse_permissions(text, "f") == expected
