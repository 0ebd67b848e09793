"""``parse_condition``: facts, ``and``, ``or``, ``not`` and parentheses, on one line."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

MAX_CONDITION = 200
_WORDS = re.compile(r"(?:[() ]|\b[A-Za-z_]\w*\b)*", re.ASCII)
_Tree = str | tuple["str | _Tree", ...]
"""A fact, or an operator with what it is applied to."""


@dataclass(frozen=True)
class Condition:
    """A condition as it was written, and the facts that it names, in their order."""

    text: str
    facts: tuple[str, ...]
    tree: _Tree

    def holds(self, facts: Mapping[str, bool | None]) -> bool:
        """Whether it holds, whatever the facts may be that cannot be determined (None)."""
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
    """The condition; raises ``ValueError``."""
    facts: list[str] = []

    def read(node: ast.expr) -> _Tree:
        match node:
            case ast.Name(id=fact):
                facts.append(fact)
                return fact
            case ast.BoolOp(op=operator, values=parts):
                return ("or" if isinstance(operator, ast.Or) else "and", *map(read, parts))
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return ("not", read(part))
        raise ValueError

    try:
        # Python would also take other letters, several lines and comments.
        if not _WORDS.fullmatch(text):
            raise ValueError
        tree = read(ast.parse(text.strip(" "), mode="eval").body)
    except (ValueError, SyntaxError) as error:
        raise ValueError(
            f"{text!r} is no condition, which is one line of facts, and, or, not and parentheses"
        ) from error
    return Condition(text.strip(" "), tuple(dict.fromkeys(facts)), tree)


def check_condition(text: str) -> str:
    """``text``, if it is a condition; raises ``ValueError``."""
    if len(text) > MAX_CONDITION:
        raise ValueError(f"a condition has at most {MAX_CONDITION} characters")
    parse_condition(text)
    return text
