"""Modes files as users and strangers write them: what loads, what is refused, and the message."""

from typing import Any

import pytest

from modes.errors import ModeFileError
from modes.files.bounded_yaml import MAX_CHARACTERS
from modes.files.modes_file import parse_modes, parse_permissions
from tests.harness.place import modes_file

HEAD = "customModes:\n- slug: a\n  name: A\n  roleDefinition: r\n"
AS_JSON = """
{"customModes": [{"slug": "a", "name": "A", "roleDefinition": "r", "source": "project",
 "iconName": "codicon-eye", "whenToUse": "w", "description": "d", "customInstructions": "c",
 "groups": ["read", ["edit", {"fileRegex": "\\\\.md$", "description": "Markdown"}]]}]}
"""
ALIASES = "customModes:\n- &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    "text",
    [
        AS_JSON,
        "\ufeff" + AS_JSON,
        AS_JSON.replace("\n", "\r\n\t"),
        "{customModes: [{slug: a, name: A, roleDefinition: r}]}",
        HEAD + "  customInstructions: |\n    one\n    two\n",
        HEAD + "  groups: &all [read, edit]\n- {slug: b, name: B, roleDefinition: r, groups: *all}",
    ],
)
def test_files_of_kilo_and_roo_load_as_they_are(text: str) -> None:
    parsed = parse_modes(text, "f")
    assert parsed.modes[0].slug == "a"
    assert not parsed.warnings


def test_every_field_arrives_but_the_rules_of_an_exported_mode() -> None:
    (mode,) = parse_modes(AS_JSON, "f").modes
    assert (mode.when_to_use, mode.description, mode.custom_instructions) == ("w", "d", "c")
    assert [grant.file_regex for grant in mode.groups] == [None, r"\.md$"]
    assert mode.grant("edit") is mode.groups[1]
    assert mode.grant("mcp") is None
    parsed = parse_modes(HEAD + "  rulesFiles: [{relativePath: a, content: b}]", "f")
    assert "'rulesFiles' is dropped: put the rules into .kilocode/rules-" in parsed.warnings[0]


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
    (mode,) = parse_modes(HEAD.replace("slug: a", f"slug: {slug}"), "f").modes
    assert mode.slug == slug


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f: the file is empty"),
        (": : :", "neither YAML nor JSON"),
        ("\x00", "neither YAML nor JSON"),
        ("- slug: a", "customModes"),
        ("customModes: []\nmore: 1", "'more'"),
        ("customModes: a", "is a list of at most 1000 modes (got 'a')"),
        ("customModes: [a]", "customModes.0"),
        ("customModes: [{}]", "slug"),
        (HEAD + "  slug: b", "the key 'slug' is there twice"),
        ('{"customModes": [], "customModes": []}', "'customModes' is there twice"),
        (modes_file("a", "b", "a"), "two modes have the slug 'a'"),
        (HEAD.replace("slug: a", 'slug: "a\\n"'), "slug: has other characters"),
        (HEAD.replace("slug: a", "slug: __class__"), "'__class__'"),
        (HEAD.replace("slug: a", "slug: ä"), "'ä'"),
        (HEAD.replace("slug: a", "slug: ٣"), "slug"),
        (HEAD.replace("slug: a", "slug: ''"), "slug: has other characters"),
        (HEAD.replace("slug: a", "slug: []"), "slug: is not text"),
        (HEAD.replace("slug: a", "slug: " + "a" * 101), "at most 100"),
        (HEAD.replace("name: A", "name: " + "a" * 101), "at most 100"),
        (HEAD.replace("name: A", 'name: "A\\u2028B"'), "printable"),
        (HEAD.replace("name: A", 'name: "A\\u2800B"'), "printable"),
        (HEAD.replace("name: A", "name: ''"), "mode 'a': name"),
        (HEAD.replace("name: A", 'name: " \\t"'), "mode 'a': name"),
        (HEAD.replace("name: A", 'name: "A\\nB"'), "mode 'a': name"),
        (HEAD.replace("roleDefinition: r", "roleDefinition: '  '"), "roleDefinition"),
        (HEAD.replace("  roleDefinition: r\n", ""), "roleDefinition: is missing"),
        (HEAD + "  groups: ['']", "groups.0.group"),
        (HEAD + "  groups: [read, read]", "group 'read' is there twice"),
        (HEAD + "  groups: read", "groups"),
        (HEAD + "  groups: [[edit, {fileRegex: '('}]]", "'(' is no regular expression"),
        (HEAD + "  groups: [[edit, {fileRegex: 'a{99999999}'}]]", "repeats too much"),
        (HEAD + "  groups: [[edit, {fileRegex: '((a{999}){999}){999}'}]]", "999 x 999 x 999"),
        (HEAD + f"  groups: [[edit, {{fileRegex: '{'a' * 1001}'}}]]", "1001 characters"),
        (HEAD + f"  groups: [[edit, {{fileRegex: '{'(' * 450}a{')' * 450}'}}]]", "recursion"),
        (HEAD + "  groups: [[edit, {fileRegexp: x}]]", "fileRegexp"),
        (HEAD + "  groups: [[edit, {fileRegex: [5]}]]", "fileRegex: is not text"),
        (HEAD + "  groups: [[edit, {fileRegex: }]]", "an empty fileRegex"),
        (
            '{"customModes": [{"slug": "a", "name": "A", "roleDefinition": "r", '
            '"groups": [["edit", {"fileRegex": null}]]}]}',
            "an empty fileRegex",
        ),
        (HEAD + "  groups: [[read, {group: command}]]", "unknown key 'group'"),
        (HEAD + "  groups: [" + "read, " * 500 + "]", "500 groups"),
        (HEAD + "  groups: [[edit, {fileRegex: '(?x)a{ 9999999}'}]]", "may not have '(?x'"),
        (HEAD + "  groups: [[edit, {fileRegex: 'a(?R)?b'}]]", "may not have '(?R'"),
        (HEAD + "  groups: [[edit, {fileRegex: '(a)(?1)'}]]", "may not have '(?1'"),
        (HEAD + '  whenToUse: "\\ud800"', "f: "),
        ('{"customModes": [{"slug": "a", "name": "A", "roleDefinition": "\\ud800"}]}', "f: "),
        (HEAD + "  groups: [[read, {fileRegex: x}]]", "not 'read'"),
        (HEAD + "  groups: [[edit]]", "groups.0"),
        (HEAD + "  groups: [[edit, {}, {}]]", "groups.0"),
        (HEAD + "  tools: [read_file]", "tools"),
        (HEAD + "  origin: {level: built-in}", "origin"),
        (HEAD + "  model: gpt", "model"),
        (HEAD + "  permissions: {write_file: maybe}", "'maybe'"),
        (HEAD + "  permissions: [allow]", "permissions"),
        (HEAD + "  permissions: {write_file: {'': allow}}", "at least 1"),
        ("a: &a [*a]", "refers to itself"),
        ("customModes: " + "[" * 5000, "levels"),
        ('{"customModes": ' * 5000, "recursion"),
        ("customModes:\n" + "- a\n" * 200_000, "values"),
        ("customModes:\n" + "- a\n" * 1001, "at most 1000 modes"),
        ("x: &x " + "y" * 100_000 + "\ny: [" + "*x, " * 1000 + "]", "values"),
        ("".join(f"k{number}: 1\n" for number in range(2_000)) + "k0: 2", "'k0' is there twice"),
        (ALIASES, "aliases written out"),
        ('!!python/object/apply:os.system ["true"]', "customModes"),
        ("customModes: []\n---\ncustomModes: []", "neither YAML nor JSON"),
        ("customModes: []\n# " + "x" * 10_000_000, f"{MAX_CHARACTERS} are the limit"),
    ],
)
def test_a_broken_file(text: str, says: str) -> None:
    with pytest.raises(ModeFileError) as caught:
        parse_modes(text, "f")
    assert str(caught.value).startswith("f: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("write_file: ask", {"write_file": {"*": "ask"}}),
        ('{"write_file": {"a": "deny"}}', {"write_file": {"a": "deny"}}),
        *((text, None) for text in ("- a", "write_file: no", "write_file:", "x: {a: {b: deny}}")),
    ],
)
def test_permissions(text: str, expected: dict[str, Any] | None) -> None:
    if expected is None:
        with pytest.raises(ModeFileError, match=r"^f: "):
            parse_permissions(text, "f")
    else:
        assert parse_permissions(text, "f") == expected
