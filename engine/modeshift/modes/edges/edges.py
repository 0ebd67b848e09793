"""Edges as a mode's file has them: to which modes, from which, and under which condition.

A condition is facts, ``and``, ``or``, ``not`` and parentheses, on one line.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from modeshift.modes.plain_data import PlainData

MAX_CONDITION = 200
_WORDS = re.compile(r"(?:[() ]|\b[A-Za-z_]\w*\b)*", re.ASCII)
_Tree = str | tuple["str | _Tree", ...]
"""A fact, or an operator with what it is applied to."""


@dataclass(frozen=True)
class Condition:
    """A condition, and the facts that it names, in their order."""

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
    return Condition(tuple(dict.fromkeys(facts)), tree)


def check_condition(text: str) -> str:
    """``text``, if it is a condition; raises ``ValueError``."""
    if len(text) > MAX_CONDITION:
        raise ValueError(f"a condition has at most {MAX_CONDITION} characters")
    parse_condition(text)
    return text


ANY = "*"
"""In an edge: every mode that no other edge of the list names."""


Context = Literal["all", "plan"]
_When = Annotated[str, AfterValidator(check_condition)]


class _Edge(PlainData):
    when: _When | None = None
    """A condition; None for none."""
    otherwise: str = Field("", max_length=500)
    """What the model is told to do where it does not hold."""
    end: ClassVar[str]
    """The field with the other mode."""

    @model_validator(mode="before")
    @classmethod
    def _read_short(cls, edge: object) -> object:
        return {cls.end: edge} if isinstance(edge, str) else edge


class SwitchEdge(_Edge):
    """An edge out of a mode: in YAML a slug or ``*``, or a mapping with ``to``."""

    end = "to"
    to: str
    ask: Literal["never"] | None = None
    """``never``: such a switch runs without a question to a person."""
    plan: bool = False
    """Whether the plan that the mode wrote last is handed over, and limits what is written then."""
    context: Context = "all"
    """What the model is sent behind such a switch, unless a person chooses: see ``Switch``."""


class EntryEdge(_Edge):
    """An edge into a mode: in YAML a slug or ``*``, or a mapping with ``from``."""

    end = "source"
    source: str = Field(alias="from")


def _refuse_twice(edges: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
    for slug, count in Counter(getattr(edge, edge.end) for edge in edges).items():
        if count > 1:
            raise ValueError(f"{slug!r} is there twice; join the conditions with 'or'")
    return edges


def _check_readers(edges: tuple[SwitchEdge, ...]) -> tuple[SwitchEdge, ...]:
    if any(edge.plan and edge.ask for edge in edges):
        raise ValueError("a person reads a plan, so there is no 'ask: never' beside 'plan: true'")
    return edges


_NONE_TWICE = AfterValidator(_refuse_twice)
SwitchEdges = Annotated[tuple[SwitchEdge, ...], _NONE_TWICE, AfterValidator(_check_readers)]
EntryEdges = Annotated[tuple[EntryEdge, ...], _NONE_TWICE]
