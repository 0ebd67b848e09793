"""``split_line``: the commands of a line that does nothing but run them one after the other."""

import re
from functools import cache
from typing import TYPE_CHECKING

from modeshift.modes.rules.matching import MAX_LINE, command_words

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_PARTS = 20
# To a shell nothing else is blank: a carriage return is part of a command's name.
_BLANK = " \t\n"
_BETWEEN = re.compile(rf"[{_BLANK}]*(?:&&|\|\||;|\n)[{_BLANK}]*")
_JOINS = frozenset({"program", "list", "&&", "||", ";", "\n"})
# What the next command means depends on these: another folder, another PATH, another function.
_BUILT_IN = frozenset(
    """. alias bg bind break builtin caller cd chdir command compgen complete compopt continue
    coproc declare dirs disown enable eval exec exit export fc fg getopts hash history jobs kill let
    local logout mapfile popd printf pushd read readarray readonly return set shift shopt source
    suspend test time times trap type typeset ulimit umask unalias unset wait""".split()  # noqa: SIM905
)


def split_line(line: str) -> tuple[str, ...]:
    """The commands that ``&&``, ``||``, ``;`` and line breaks join; none if that is not certain.

    Certain is what a grammar of Bash reads without an error and `command_words` takes word by
    word: no pipe, redirection, expansion, assignment, function, here-document or background, and
    no command of the shell's own that changes what the next one means.
    """
    if len(line) > MAX_LINE or not line.isascii():
        return ()
    root = _get_parser().parse(line.encode()).root_node
    spans = None if root.has_error else _list_commands(root)
    if spans is None or not 1 < len(spans) <= MAX_PARTS:
        return ()
    parts = tuple(line[begin:end] for begin, end in spans)
    ends = [0, *(end for _, end in spans)]
    gaps = [line[a:b] for a, b in zip(ends, [*(begin for begin, _ in spans), None], strict=True)]
    words = [command_words(part) for part in parts]
    is_certain = all(each is not None and each[0] not in _BUILT_IN for each in words)
    are_joined = all(map(_BETWEEN.fullmatch, gaps[1:-1])) and not (gaps[0] + gaps[-1]).strip(_BLANK)
    return parts if is_certain and are_joined else ()


def _list_commands(node: "Node") -> list[tuple[int, int]] | None:
    """Where the commands begin and end, in order; None if there is something else."""
    if node.type == "command":
        return [(node.start_byte, node.end_byte)]
    if node.type not in _JOINS:
        return None
    found = [_list_commands(child) for child in node.children]
    spans = [span for each in found if each is not None for span in each]
    return None if None in found else spans


@cache
def _get_parser() -> "Parser":
    import tree_sitter_bash  # noqa: PLC0415  # only for such a line
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_bash.language()))
