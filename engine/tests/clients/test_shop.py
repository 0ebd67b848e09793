"""Another agent than a coding one: tools of the owner's own service, no files and no commands."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages.utils import count_tokens_approximately

from modeshift.modes.errors import InvalidInputError
from modeshift.prompts import render_summary_request
from modeshift.terminal.conversation import describe_keys
from modeshift.testing import Conversation, edit, judge_call, make_agent
from modeshift.testing.answers import next_request
from modeshift.testing.plugin import Snapshot
from tests.harness import prefork
from tests.harness.clone import change
from tests.harness.conversation import APPROVE, REJECT
from tests.harness.modes import load_catalog
from tests.harness.place import environment
from tests.harness.programs import run_in_clone
from tests.harness.shop import Api, make_shop, serving_api
from tools.conversation import conversation_tools

REFUND = 'call refund {"order": "A-17", "amount": 49.9, "why": "broken"}'
NOTE = 'call send_note {"order": "A-17", "text": "sorry"}'
LIMIT = 'permissions: {refund: {"*": deny, "* <=50": ask}}\n'
CHECKS = """
from modeshift.testing import check_agent

from graph.agent import build

check_agent(build)
"""
UNDO = """
import asyncio

from modeshift import open_agent
from modeshift.turns.undo import describe_undo


async def main() -> None:
    async with open_agent() as agents:
        thread = agents.thread()
        for text in ("hello", 'call find_order {"order": "A-17"}'):
            await thread.say(text, mode="triage")
        preview = await thread.undo()
        done = await thread.undo("last", preview["digest"])
        print(*describe_undo(await thread.deps(), done), sep="\\n")
        print([each.text for each in await thread.history() if each.type == "human"])


asyncio.run(main())
"""
OF_FILES = re.compile(r"workspace|files?\b|folder|sandbox|shell|command|\bgit\b", re.IGNORECASE)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    make_shop(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    with serving_api() as api:
        monkeypatch.setenv("SHOP", api.url)
        yield api


@pytest.fixture
def talk(shop: Path, api: Api) -> Conversation:
    return Conversation(build(shop))


def build(shop: Path, model: str = "offline", **options: Any) -> Any:
    """Its agent, in this process."""
    made: dict[str, Any] = {}
    exec(compile((shop / "tools/orders.py").read_text(), "orders.py", "exec"), made)  # noqa: S102
    groups = {"orders": made["order_tools"], "refunds": made["refund_tools"]}
    listed = [*groups.items(), (None, conversation_tools)]
    modes = load_catalog("triage", shop / "modes")
    return make_agent(shop, model, modes=modes, tools=listed, **options)


@pytest.mark.parametrize("approvals", ["manual", "auto"])
async def test_money_is_paid_once_a_person_says_so(shop: Path, api: Api, approvals: str) -> None:
    """No policy lifts it; with the key of the call, which the service can hold on to."""
    talk = Conversation(build(shop, approvals=approvals))
    await talk.say(REFUND, mode="triage")
    assert (await talk.waiting(), api.asked) == ([], [])
    await talk.say(REFUND, mode="refund")
    (request,) = await talk.waiting()
    assert request["description"] == "Refund mode wants to use refund: changes something outside."
    assert "remember" not in request
    for always in (True, "*"):
        with pytest.raises(InvalidInputError, match="a person decides on this every time"):
            await talk.decide({**APPROVE, "remember": always})
    assert api.asked == []
    await talk.decide(APPROVE)
    ((method, path, body, key),) = api.asked
    assert (method, path, body) == ("POST", "/orders/A-17/refunds", '{"amount":49.9}')
    assert key is not None and len(key) == 64
    result = list((await talk.results()).values())[-1]
    assert re.match(r'<data-\w+ source="refund">\n', result.text)


@pytest.mark.parametrize("amount", ["50.01", "1e9", '"80"', '"NaN"', '"Infinity"'])
async def test_a_limit_in_the_modes_file_holds(shop: Path, api: Api, amount: str) -> None:
    """For the model, and for what a person writes into the card."""
    with (shop / "modes/refund.yaml").open("a") as file:
        file.write(LIMIT)
    talk = Conversation(build(shop))
    await talk.say(REFUND.replace("49.9", amount), mode="refund")
    assert await talk.waiting() == []
    (result,) = (await talk.results()).values()
    assert result.status == "error"
    await talk.say(REFUND.replace("49.9", "50"))
    await talk.decide(edit("refund", order="A-17", amount=json.loads(amount)))
    assert (await talk.waiting(), api.asked) == ([], [])
    await talk.say(REFUND.replace("49.9", "50"))
    await talk.decide(APPROVE)
    assert [body for _, _, body, _ in api.asked] == ['{"amount":50.0}']


async def test_what_is_read_outside_asks_nobody_and_is_data(talk: Conversation, api: Api) -> None:
    await talk.say('call find_order {"order": "A-17"}', mode="triage")
    assert [asked[1:] for asked in api.asked] == [("/orders/A-17", "", None)]
    (result,) = (await talk.results()).values()
    assert re.match(r'<data-\w+ source="find_order">\n.*Refund all', result.text)


async def test_what_may_be_remembered_is_the_very_call(talk: Conversation, api: Api) -> None:
    await talk.say(NOTE, mode="refund")
    (request,) = await talk.waiting()
    assert request["remember"] == 'order="A-17", text="sorry"'
    assert "pattern" not in request, "send_note names no subject"
    await talk.decide({**APPROVE, "remember": True})
    await talk.say(NOTE)
    assert (await talk.waiting(), len(api.asked)) == ([], 2)
    for text in (NOTE.replace("sorry", "no"), NOTE.replace("A-17", "A-18"), REFUND):
        await talk.say(text)
        assert await talk.waiting(), text
        await talk.decide(REJECT)
    await talk.say(NOTE, mode="manager")
    assert len(api.asked) == 2, "in another mode it is not remembered"


async def test_a_card_has_the_amount_that_the_model_left_out(shop: Path, api: Api) -> None:
    change(shop / "tools/orders.py", "amount: float,", "amount: float = 99,")
    talk = Conversation(build(shop))
    await talk.say('call refund {"order": "A-17"}', mode="refund")
    (request,) = await talk.waiting()
    assert request["args"] == {"order": "A-17", "amount": 99}
    await talk.decide(APPROVE)
    assert [body for _, _, body, _ in api.asked] == ['{"amount":99}']


async def test_a_mode_says_which_tools_of_the_conversation_it_has(talk: Conversation) -> None:
    deps = talk.agent.live.deps
    tools = {slug: deps.seat(slug).tools for slug in deps.catalog}
    assert tools["triage"] == ("find_order", "switch_mode", "ask_followup_question")
    assert tools["refund"] == ("find_order", "send_note", "refund", "switch_mode")
    assert "new_task" not in deps.declared, "which no mode has"
    sizes = {}
    for slug in ("manager", "refund"):
        own = [name for name in tools[slug] if deps.toolbox[name].spec.group is None]
        schemas = [deps.declared[name] for name in own]
        sizes[slug] = count_tokens_approximately([], tools=schemas) * 5 // 4
    assert sizes["manager"] <= 450
    assert sizes["refund"] <= 150
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "update_todo_list": ("allow", {"todos": []}),
        "ask_followup_question": ("ask", {"question": "x"}),
        "attempt_completion": ("allow", {"result": "x"}),
        "new_task": ("deny", {"mode_slug": "refund", "message": "x"}),
    }
    for name, (kind, args) in calls.items():
        in_modes = [
            await judge_call(talk.agent, mode, name, args) for mode in ("manager", "refund")
        ]
        limited = await judge_call(talk.agent, "manager", name, args, limit="refund")
        assert [one.kind for one in (*in_modes, limited)] == [kind, "deny", "deny"], name


async def test_the_first_request_has_no_word_on_files(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    talk = Conversation(build(shop, "openai:gpt-5"))
    for mode in talk.agent.live.deps.catalog:
        sent = await next_request(talk, "hello", mode=mode)
        assert OF_FILES.findall(str(sent.body)) == []
    assert OF_FILES.findall(render_summary_request(has_files=False)) == []


async def test_the_offline_model_offers_no_files(talk: Conversation) -> None:
    await talk.say("hello", mode="triage")
    said = (await talk.messages())[-1].text
    assert "call <tool>" in said
    assert not re.search("read <path>|run <command line>", said)


def test_there_is_no_workspace(shop: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    settings = environment(tmp_path, MODES_FOLDER=str(shop / "modes"), SANDBOX="auto")
    before = {*shop.iterdir()}
    commands = (("modes",), ("modes", "--prompt"), ("doctor",))
    shown = {command: run_in_clone(shop, "modeshift", *command, **settings) for command in commands}
    assert OF_FILES.findall("".join(shown.values())) == []
    (tmp_path / ".kilocodemodes").write_text("customModes: []")
    settings["WORKSPACE"] = str(tmp_path)
    assert "there is nothing to trust" in run_in_clone(shop, "modeshift", "trust", **settings)
    snapshot("shop.txt", {"modes": shown["modes",]})
    assert {*shop.iterdir()} - before <= {shop / "__pycache__"}


def test_a_conversation_without_files_goes_back(shop: Path, api: Api, tmp_path: Path) -> None:
    (shop / "back.py").write_text(UNDO)
    settings = environment(tmp_path, MODES_FOLDER=str(shop / "modes"))
    said = run_in_clone(shop, "back", **settings).splitlines()
    mode = "mode triage, approvals manual"
    assert said == [f"Undo: the conversation goes back; {mode}.", "['hello']"]


def test_the_keys_of_a_terminal_are_for_files_where_there_are_some() -> None:
    assert "\n@ " in describe_keys(has_files=True)
    assert not re.search(r"files?\b|\n@", describe_keys(has_files=False))


def test_the_proof_takes_limits_and_modes_that_begin_no_sub_tasks(
    shop: Path, tmp_path: Path
) -> None:
    with (shop / "modes/refund.yaml").open("a") as file:
        file.write(LIMIT)
    (shop / "modes/properties.yaml").write_text("- never: {mode: triage, bound: refund}\n")
    said = run_in_clone(
        shop, "modeshift", "prove", **environment(tmp_path, MODES_FOLDER=str(shop / "modes"))
    )
    assert "proved  every edge can be taken" in said
    assert "BROKEN" not in said


def test_a_clones_checks_pass_where_turns_lead_back(shop: Path, tmp_path: Path) -> None:
    for slug in ("refund", "manager"):
        with (shop / f"modes/{slug}.yaml").open("a") as file:
            file.write("then: triage\n")
    (shop / "checks.py").write_text(CHECKS)
    run_in_clone(shop, "checks", **environment(tmp_path, MODES_FOLDER=str(shop / "modes")))


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("modes/refund.yaml", "tion: []", "tion: [todo]", "is not 'questions', 'todos' or "),
        ("modes/refund.yaml", "conversation", "conversaton", "write 'conversation'; "),
        ("tools/orders.py", '"outside", subject', '"outsid", subject', "unknown effect 'outsid'; "),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    shop: Path, tmp_path: Path, file: str, old: str, new: str, told: str
) -> None:
    """And nothing is written."""
    change(shop / file, old, new)
    settings = environment(tmp_path, MODES_FOLDER=str(shop / "modes"))
    before = {*shop.rglob("*")}
    done = prefork.run("modeshift", "modes", "--mode", "refund", cwd=shop, env=settings)
    (line,) = (line for line in done.stderr.splitlines() if told in line)
    assert file in line
    assert done.returncode != 0
    assert {path for path in {*shop.rglob("*")} - before if "__pycache__" not in str(path)} == set()
