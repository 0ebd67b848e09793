"""Conditions of edges: facts, ``and``, ``or``, ``not`` and parentheses, on one line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

MAX_CONDITION = 200
_TOKEN = re.compile(r" *([()]|[A-Za-z_][A-Za-z0-9_]*)")
_WORDS = ("and", "or", "not")
_Tree = str | tuple["str | _Tree", ...]
"""A fact, or an operator with what it is applied to."""


@dataclass(frozen=True)
class Condition:
    """A condition as it was written, and the facts that it names, in their order."""

    text: str
    facts: tuple[str, ...]
    tree: _Tree

    def holds(self, facts: Mapping[str, bool | None]) -> bool:
        """Whether it holds whatever those facts are that are None: they cannot be determined."""
        return _evaluate(self.tree, facts) is True


def _evaluate(tree: _Tree, facts: Mapping[str, bool | None]) -> bool | None:
    if isinstance(tree, str):
        return facts.get(tree)
    operator, *parts = tree
    values = [_evaluate(part, facts) for part in parts]
    if operator == "not":
        return None if values[0] is None else not values[0]
    decides = operator == "or"
    if decides in values:
        return decides
    return None if None in values else not decides


@lru_cache(maxsize=10_000)
def parse_condition(text: str) -> Condition:
    """The condition; raises ``ValueError`` that says where it ends to be one."""
    tokens: list[str] = []
    place = 0
    while text[place:].strip(" "):
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].strip(" ")
            raise ValueError(
                f"{rest[:20]!r} has no place in a condition, which is one line of facts, "
                "and, or, not and parentheses"
            )
        tokens.append(match[1])
        place = match.end()
    parser = _Parser([*tokens])
    tree = parser.parse_any()
    if parser.tokens:
        raise ValueError(f"{parser.tokens[0]!r} has no place behind {' '.join(parser.taken)!r}")
    facts = dict.fromkeys(word for word in tokens if word not in {*_WORDS, "(", ")"})
    return Condition(text.strip(" "), tuple(facts), tree)


class _Parser:
    """What is left of a condition's words, and what was taken."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.taken: list[str] = []

    def _take(self) -> str:
        word = self.tokens.pop(0)
        self.taken.append(word)
        return word

    def _parse_list(self, operator: str) -> _Tree:
        parse = self.parse_all if operator == "or" else self._parse_one
        parts = [parse()]
        while self.tokens[:1] == [operator]:
            self._take()
            parts.append(parse())
        return parts[0] if len(parts) == 1 else (operator, *parts)

    def parse_any(self) -> _Tree:
        return self._parse_list("or")

    def parse_all(self) -> _Tree:
        return self._parse_list("and")

    def _parse_one(self) -> _Tree:
        if not self.tokens:
            behind = f" behind {' '.join(self.taken)!r}" if self.taken else ""
            raise ValueError(f"a fact is missing{behind}")
        word = self._take()
        if word == "not":
            return ("not", self._parse_one())
        if word == "(":
            tree = self.parse_any()
            if self.tokens[:1] != [")"]:
                raise ValueError(f"')' is missing behind {' '.join(self.taken)!r}")
            self._take()
            return tree
        if word in (*_WORDS, ")"):
            raise ValueError(f"a fact is missing before {word!r}")
        return word


def check_condition(text: str) -> str:
    """``text``, if it is a condition; raises ``ValueError``."""
    if len(text) > MAX_CONDITION:
        raise ValueError(f"a condition has at most {MAX_CONDITION} characters")
    parse_condition(text)
    return text


def join_conditions(*texts: str) -> str:
    """One that holds where all hold; empty for no condition."""
    parts = list(dict.fromkeys(text for text in texts if text))
    return "".join(parts) if len(parts) < 2 else " and ".join(f"({text})" for text in parts)
