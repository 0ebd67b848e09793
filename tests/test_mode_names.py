"""A mode that a prompt, a mode's text or a setting names exists."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from modeshift.testing import load_modes

ROOT = Path(__file__).parent.parent
NAME = r"[A-Z][\w-]*(?: [A-Z][\w-]*)*"
IN_MODE = re.compile(rf"({NAME}) mode\b|`([\w-]+)` mode\b|\bmode `([\w-]+)`|\bmode_slug\W+([\w-]+)")
SWITCH_TO = re.compile(rf"\bto ({NAME})")


def list_named(text: str) -> Iterator[str]:
    """What ``text`` calls a mode: "X mode", and "to X" in a sentence about a switch."""
    for found in IN_MODE.finditer(text):
        yield next(filter(None, found.groups()))
    for sentence in re.split(r"[.\n]\s", text):
        if re.search(r"\bswitch", sentence, re.I):
            yield from SWITCH_TO.findall(sentence)


def list_unknown(texts: Mapping[str, str], modes: Iterable[str]) -> list[str]:
    """What to do about each mode that is named in ``texts``, by file, and is none of ``modes``."""
    known = {mode.lower() for mode in modes}
    found = []
    for file, text in texts.items():
        for name in dict.fromkeys(list_named(text)):
            # "In Code mode" and "to Code Review" have one more word than the name.
            words = name.lower().split()
            parts = {" ".join(words[:n]) for n in range(1, len(words) + 1)}
            parts |= {" ".join(words[n:]) for n in range(len(words))}
            if not parts & known:
                found.append(
                    f"{file} names the mode {name!r}, which does not exist. Change the text, or "
                    f"add the mode to modes/; there are: {', '.join(sorted(known))}"
                )
    return found


def test_the_modes_that_texts_name_exist() -> None:
    catalog = load_modes().catalog
    texts = {f"prompts/{file.name}": file.read_text() for file in (ROOT / "prompts").glob("*.md")}
    modes = [catalog[slug] for slug in catalog]
    for mode in modes:
        parts = (mode.role_definition, mode.when_to_use, mode.description, mode.custom_instructions)
        texts[f"modes/{mode.slug}.yaml"] = "\n".join(filter(None, parts))
    names = [*catalog, *(mode.name for mode in modes)]
    assert not list_unknown(texts, names)
    for file in (ROOT / "prompts").glob("[!_]*.md"):
        assert file.stem in catalog, f"prompts/{file.name} is of no mode: delete or rename it"


@pytest.mark.parametrize(
    "text",
    [
        "Ask for a switch to Architect.",
        "Ask for a switch: to Code when it is plain, to Architect when it is not.",
        "# In Architect mode\n\nYou plan.",
        "You are Modeshift in Architect mode: a lead.",
        "Use the `architect` mode.",
        'Call switch_mode with mode_slug="architect".',
    ],
)
def test_a_mode_that_does_not_exist_is_found(text: str) -> None:
    (said,) = list_unknown({"prompts/code.md": text}, ["code", "Code"])
    assert "prompts/code.md names the mode " in said
    assert "rchitect" in said
    assert not list_unknown({"prompts/code.md": text}, ["code", "architect"])
