"""Command lines: their words, if a line is provably one command and nothing more.

Every parser of shell text has been outwitted, so this is none: a line is accepted only if
nothing in it has a meaning to a shell.
"""

import re

# Quoted text is literal to every shell as long as it holds no quote of its kind, and in
# double quotes nothing that expands. No "~", "*", "?", "[", "{", "#", "!", "\" outside.
_QUOTED = r"""'([ !-&(-~]*)'|"([ #%-\[\]-_a-~]*)\""""
_WORD = rf"(?:[A-Za-z0-9_@%+=:,./-]|{_QUOTED})+"
_LINE = re.compile(rf" *{_WORD}(?: +{_WORD})* *")
_WORDS = re.compile(_WORD)
MAX_CHARACTERS = 10_000
MAX_COMMANDS = 100
_OPERATORS = re.compile(r"[;&|(){}<>`\r\n]|\$\(")


def command_words(line: str) -> tuple[str, ...] | None:
    """The words of a line that is one command; None if that is not certain.

    No operator, redirection, substitution, expansion, line break, or assignment before the
    command.
    """
    if len(line) > MAX_CHARACTERS or _LINE.fullmatch(line) is None:
        return None
    words = tuple(
        re.sub(_QUOTED, lambda quoted: quoted[1] or quoted[2] or "", word[0])
        for word in _WORDS.finditer(line)
    )
    return None if "=" in words[0] else words


def mentioned_commands(line: str) -> list[tuple[str, ...]]:
    """What may be the commands of a line: a guess, good for refusing and never for allowing.

    At most ``MAX_COMMANDS``, so that a line made to be long takes no time.
    """
    found: list[tuple[str, ...]] = []
    for part in _OPERATORS.split(line[:MAX_CHARACTERS]):
        if len(found) == MAX_COMMANDS:
            break
        words = [re.sub(r"[\\'\"]", "", word) for word in part.split()]
        while words and "=" in words[0]:
            del words[0]
        if words:
            found.append(tuple(words))
    return found
