"""The figures in docs/figures.md are those of the code; how levels and circles are counted."""

from benchmarks.stats import (
    PAGE,
    find_groups,
    find_levels,
    measure,
    read_released,
    with_figures,
)
from tests.harness.root import ENGINE

MOST = 1.11
"""A tenth, and a hundredth until the next release: an approved plan and undo came on top."""
TOLERANCE = 0.03
"""So that not every commit has to write them."""


def test_the_figures_are_not_far_off() -> None:
    page = (ENGINE / PAGE).read_text(encoding="utf-8")
    figures = dict(measure(ENGINE))
    now = with_figures(page, figures)
    rows = {line.split(" | ")[0]: line for line in page.splitlines() if line.startswith("| ")}
    for what, figure in figures.items():
        shown = int(rows[f"| {what}"].split(" | ")[-1].strip("| ").replace(",", ""))
        is_near = abs(shown - figure) <= max(1, figure * TOLERANCE)
        assert is_near, f"{PAGE} says {shown} {what}, and there are {figure}: run `make renew`"
    assert with_figures(now, figures) == now


def test_the_product_is_not_much_larger_than_the_last_release() -> None:
    what = "lines of product code"
    released = read_released((ENGINE / PAGE).read_text(encoding="utf-8"), what)
    assert dict(measure(ENGINE))[what] <= MOST * released


def test_levels_and_circles() -> None:
    chain = {"a": frozenset("b"), "b": frozenset("cd"), "c": frozenset("d"), "d": frozenset[str]()}
    assert find_levels(chain) == {"a": 4, "b": 3, "c": 2, "d": 1}
    circle = {**chain, "d": frozenset("c")}
    assert find_levels(circle) == {"a": 3, "b": 2, "c": 1, "d": 1}
    assert {group for group in find_groups(circle).values() if len(group) > 1} == {frozenset("cd")}
