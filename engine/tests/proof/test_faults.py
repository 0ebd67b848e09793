"""Faults that are planted one by one, in the engine or in data, are found: ``faults.yaml``."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from graph.chart import CHART
from modeshift.models.loading import Models
from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.chart import ChartData
from modeshift.modes.mode import Mode
from modeshift.proof.prove import Proof, PropertyResult, prove, read_own
from modeshift.threads.deps import AgentDeps
from modeshift.tools.processes.sandboxes import Commands
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import make_toolbox
from tests.harness.faults import planted
from tests.harness.modes import load_catalog
from tests.harness.place import JUDGED_SANDBOX
from tests.tables import rows

FAULTS = yaml.safe_load((Path(__file__).parent / "faults.yaml").read_text(encoding="utf-8"))


def make_deps(folder: Path, fault: dict[str, Any], depth: int) -> AgentDeps:
    known, changes = load_catalog(), fault.get("modes", {})
    slugs = fault.get("of", ["ask", "code"])
    modes = [Mode.model_validate({**dict(known[slug]), **changes.get(slug, {})}) for slug in slugs]
    modes += [
        Mode(slug=f"m-{number}", name="-", role_definition="-", groups=())
        for number in range(fault.get("more", 0))
    ]
    catalog = Catalog(modes, slugs[0])
    chart = CHART
    if own := fault.get("chart"):
        names = [phase for edge in own for phase in (edge[0], edge[2])]
        nodes = {**dict.fromkeys(names, "node"), **CHART.nodes}
        chart = ChartData(nodes, [*CHART.edges, *map(tuple, own)])
    commands = Commands(JUDGED_SANDBOX if fault.get("sandbox") else None)
    toolbox = make_toolbox(Workspace(folder), catalog, commands)
    return AgentDeps(catalog, toolbox, Models(OfflineModel()), subtask_depth=depth, chart=chart)


def prove_with(folder: Path, fault: dict[str, Any], depth: int = 1) -> Proof:
    with planted(fault):
        deps = make_deps(folder, fault, depth)
        own = yaml.safe_dump([fault["own"]]) if "own" in fault else ""
        return prove(deps, read_own(deps, own, "modes/properties.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.get('in', 'data')}")
def test_a_fault_is_found(tmp_path: Path, fault: dict[str, Any]) -> None:
    broken = list[PropertyResult]()
    for depth in (0, 1):  # without sub-tasks there is a seventh of the places to look at
        broken += [one for one in prove_with(tmp_path, fault, depth).results if one.problem]
        if any(one.name.startswith(fault["found"]) for one in broken):
            return
    pytest.fail(f"found instead: {broken}")


@rows("target depth sandbox", ("ask", 1, False), ("debug", 1, True), ("debug", 0, True))
def test_without_a_fault_all_holds(tmp_path: Path, target: str, depth: int, sandbox: bool) -> None:
    unasked = {"code": {"switches": [{"to": target, "ask": "never"}, {"to": "*"}]}}
    fault = {"of": ["ask", "code", "debug"], "modes": unasked, "sandbox": sandbox}
    proof = prove_with(tmp_path, fault, depth)
    assert [result for result in proof.results if result.problem] == []
    assert len(FAULTS) >= 25


@pytest.mark.parametrize(
    "keys",
    [{"enter_from": []}, {"then": "ask"}, {"switches": [{"to": "ask", "when": "plan_approved"}]}],
)
def test_a_mode_with_such_keys_is_proved(tmp_path: Path, keys: dict[str, Any]) -> None:
    fault = {"of": ["ask", "code"], "modes": {"code": keys}}
    proof = prove_with(tmp_path, fault)
    assert [result for result in proof.results if result.problem] == []


@pytest.mark.slow
def test_many_modes_are_proved_and_what_is_wrong_is_found(tmp_path: Path) -> None:
    condition = {"switches": [{"to": "architect", "when": "asked_user"}]}
    good = {"more": 9, "of": ["ask", "architect"], "modes": {"ask": condition}}
    proof = prove_with(tmp_path, good)
    assert [result for result in proof.results if result.problem] == []
    assert "every mode" in proof.reduction
    old, new = "edge.is_open(values)", "True"
    fault = {"in": "calls.ways:find_way_problem", "old": old, "new": new}
    broken = [result for result in prove_with(tmp_path, good | fault, 0).results if result.problem]
    assert broken[0].name == "no node sends an event that is illegal where it sends it"
    assert broken[0].steps[0].startswith(("a new thread in ask", "a thread in ask"))
