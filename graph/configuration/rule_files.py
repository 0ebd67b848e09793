"""Which files of a workspace are rules for the prompt, and in which order."""

import re
from collections.abc import Iterator, Mapping

from graph.configuration.prompt_rules import Rule, cut

AGENTS = "AGENTS.md"
EDITORS = (".kilocode", ".roo")
STAND_INS = (".roorules", ".clinerules", ".kilocoderules")
"""Files or folders, also with ``-{slug}``: the first of them, where the editors have no rules."""
_SLUG = r"(?:-([A-Za-z0-9-]+))?"
_NAMES = r"(?:[^./][^/]*/)*(?:[^./][^/]*)?"
IN_EDITORS = re.compile(rf"({'|'.join(map(re.escape, EDITORS))})/rules{_SLUG}/{_NAMES}")
STANDING_IN = re.compile(rf"({'|'.join(map(re.escape, STAND_INS))}){_SLUG}(?:/{_NAMES})?")


def list_rules(texts: Mapping[str, str]) -> Iterator[Rule]:
    """The rules among the texts of a workspace, by path."""
    if AGENTS in texts:
        yield Rule(AGENTS, texts[AGENTS])
    by_slug: dict[str | None, dict[str, list[Rule]]] = {}
    for pattern, folders in ((IN_EDITORS, EDITORS), (STANDING_IN, STAND_INS)):
        for folder in folders:
            for name, text in texts.items():
                if (found := pattern.fullmatch(name)) and found[1] == folder:
                    group = "" if pattern is IN_EDITORS else folder
                    rules = by_slug.setdefault(found[2], {}).setdefault(group, [])
                    rules.append(Rule(name, text, found[2]))
    for groups in by_slug.values():
        yield from next(iter(groups.values()))


def find_unused(texts: Mapping[str, str]) -> Iterator[str]:
    """A notice for each rule that another one stands in front of."""
    used = {rule.name for rule in list_rules(texts)}
    for name in texts:
        if STANDING_IN.fullmatch(name) and name not in used:
            yield (
                f"{name} is not read: there are rules in the folders of .kilocode or .roo, or in "
                "another of " + ", ".join(STAND_INS)
            )


def list_nested(texts: Mapping[str, str]) -> dict[str, str]:
    """What is told of a folder once a call names what is in it, outer folders first."""
    below = (name for name in texts if name.endswith(f"/{AGENTS}"))
    nested = sorted(below, key=lambda name: name.removesuffix(AGENTS))
    return {
        (folder := name.removesuffix(AGENTS)): cut(
            f"# Rules of the project for what is in {folder}\n\n{texts[name].strip()}"
        )
        for name in nested
        if not IN_EDITORS.match(name)
    }
