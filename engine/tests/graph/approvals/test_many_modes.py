"""A refusal names modes that allow the call, and tries a few only, however many there are."""

from pathlib import Path

from langchain_core.messages.tool import tool_call

from modeshift.calls.judging import CallContext, judge
from modeshift.models.loading import Models
from modeshift.models.offline import OfflineModel
from modeshift.modes.catalog import Catalog
from modeshift.modes.edges.edge_table import MAX_TRIED
from modeshift.modes.mode import Grant, Mode
from modeshift.modes.policy import Approvals
from modeshift.threads.deps import AgentDeps
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import make_toolbox
from tests.harness.modes import load_catalog


async def refuse(folder: Path, modes: list[Mode]) -> str:
    """Why ask mode may not write a file, among these modes."""
    catalog = Catalog([load_catalog()["ask"], *modes], "ask")
    deps = AgentDeps(catalog, make_toolbox(Workspace(folder), catalog), Models(OfflineModel()))
    call = tool_call(name="write_file", args={"path": "a.txt", "content": ""}, id="1")
    judged = await judge(deps, CallContext(deps.seat("ask"), Approvals.MANUAL), call)
    return judged.verdict.reason


def limit_to(number: int) -> Mode:
    grants = (Grant(group="edit", file_regex=rf"\.m{number}$"),)
    return Mode(slug=f"m-{number}", name="-", role_definition="-", groups=grants)


async def test_a_mode_without_an_edit_limit_is_named_among_many_with_one(tmp_path: Path) -> None:
    limited = [limit_to(number) for number in range(200)]
    reason = await refuse(tmp_path, [*limited, load_catalog()["code"]])
    assert reason.endswith("Ask for one of these with switch_mode: code, or another.")
    reason = await refuse(tmp_path, limited)
    assert reason.endswith("none of the modes that were tried allows this call.")
    reason = await refuse(tmp_path, limited[:MAX_TRIED])
    assert reason.endswith("there is no mode to ask for that allows this call.")
