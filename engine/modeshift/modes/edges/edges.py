"""Edges as a mode's file has them: to which modes, from which, and under which condition."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from modeshift.modes.edges.conditions import check_condition

ANY = "*"
"""In an edge: every mode that no other edge of the list names."""


Context = Literal["all", "plan"]
_When = Annotated[str, AfterValidator(check_condition)]


class _Edge(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)

    when: _When | None = None
    """A condition; None for none."""
    otherwise: str = Field("", max_length=500)
    """What the model is told to do where it does not hold."""


class SwitchEdge(_Edge):
    """An edge out of a mode: in YAML a slug or ``*``, or a mapping with ``to``."""

    to: str
    ask: Literal["never"] | None = None
    """``never``: such a switch runs without a question to a person."""
    plan: bool = False
    """Whether the plan that the mode wrote last is handed over, and limits what is written then."""
    context: Context = "all"
    """What the model is sent behind such a switch, unless a person chooses: see ``Switch``."""


class EntryEdge(_Edge):
    """An edge into a mode: in YAML a slug or ``*``, or a mapping with ``from``."""

    source: str = Field(alias="from")


def _read_short(name: str) -> BeforeValidator:
    def read(edges: object) -> object:
        if not isinstance(edges, list):
            return edges
        return [{name: edge} if isinstance(edge, str) else edge for edge in edges]

    return BeforeValidator(read)


def _refuse_twice(end: str) -> AfterValidator:
    def check(edges: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
        for slug, count in Counter(getattr(edge, end) for edge in edges).items():
            if count > 1:
                raise ValueError(f"{slug!r} is there twice; join the conditions with 'or'")
        return edges

    return AfterValidator(check)


def _check_readers(edges: tuple[SwitchEdge, ...]) -> tuple[SwitchEdge, ...]:
    if any(edge.plan and edge.ask for edge in edges):
        raise ValueError("a person reads a plan, so there is no 'ask: never' beside 'plan: true'")
    return edges


_Exits = Annotated[tuple[SwitchEdge, ...], _read_short("to"), _refuse_twice("to")]
SwitchEdges = Annotated[_Exits, AfterValidator(_check_readers)]
EntryEdges = Annotated[tuple[EntryEdge, ...], _read_short("from"), _refuse_twice("source")]
