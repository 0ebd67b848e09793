"""Whatever is said, decided and set, in whatever order: the guarantees hold.

What each mode may do is written down once more, in ``may_run``, without the project's own rules, so
that a mistake in them shows.
"""

import asyncio
import json
import posixpath
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field
from typing_extensions import override

from modeshift.messages.instructions import remove_instructions
from modeshift.models.offline import OfflineModel
from tests.harness.conversation import APPROVE, Conversation, edit, make_agent, problems

T = TypeVar("T")
MODES = ("ask", "architect", "code", "debug")
PATHS = ("a.txt", "plan.md", "plan.md/../a.py", "sub/x.md", "../out.md", "PLAN.MD", "a.md\n", "")
TO_CODE = {"mode_slug": "code", "reason": "x"}
EDITS = [{"old": "x", "new": "y"}]
TASKS = (
    *("write plan.md: x\nwrite b.txt: y", "read a.txt & switch to debug"),
    *("task in code: write a.txt: x", "ask: Which?"),
    json.dumps([[["write_file", {"path": "a.txt", "content": "x"}], ["switch_mode", TO_CODE]]]),
)
SUGGESTION = {"text": "y", "mode": "code"}
CALLS: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.sampled_from([("read_file", {"path": path}) for path in PATHS]),
    st.sampled_from([("write_file", {"path": path, "content": "x"}) for path in PATHS]),
    st.sampled_from([("edit_file", {"path": path, "edits": EDITS}) for path in PATHS]),
    st.sampled_from([("switch_mode", {"mode_slug": m, "reason": "x"}) for m in (*MODES, "kode")]),
    st.sampled_from([("new_task", {"mode_slug": m, "message": t}) for m in MODES for t in TASKS]),
    st.sampled_from(
        [
            ("execute_command", {"command": "echo x >> log.txt"}),
            ("ask_followup_question", {"question": "?", "follow_up": [SUGGESTION]}),
            ("update_todo_list", {"todos": [{"content": "x"}]}),
            ("attempt_completion", {"result": "done"}),
            ("no_such_tool", {}),
            ("write_file", {"content": 5}),
        ]
    ),
)
STEPS = st.lists(st.lists(CALLS, min_size=1, max_size=4), min_size=1, max_size=3)
LINES = st.sampled_from(
    [
        *("hello", "write plan.md: x", "read a.txt & write b.txt: y & switch to debug"),
        "write a.txt: x & read a.txt & switch to code & list",
        "run echo x >> log.txt & switch to architect",
        "write a.txt: 1\nrun cat a.txt\nswitch to ask\nlist",
        *("todo: a; b\nask: Which?\ndone: it", "replace x with y in a.txt & read a.txt"),
    ]
)
DELEGATIONS = (
    "task in code: write a.txt: x | run echo x >> log.txt & task in ask: write b.txt: y",
    "task in ask: read a.txt & task in ask: ask: Which?\nwrite a.txt: x",
    "task in architect: write plan.md: x | write a.txt: y\nswitch to code",
    *(json.dumps([[["new_task", {"mode_slug": m, "message": t}]]]) for m in MODES for t in TASKS),
)
HOST = st.sampled_from(
    [
        *({"mode": mode} for mode in MODES),
        *({"approvals": policy} for policy in ("manual", "auto")),
        {"end_subtask": True},
    ]
)


class UnboundModel(OfflineModel):
    """The offline model, but a user message in JSON makes it call anything at all."""

    mode_of: dict[str, str] = Field(default_factory=dict)
    """The mode that the model was told it is in when it wrote the call of this id."""
    answers: int = 0

    @override
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        result = self._answer(messages, *args, **kwargs)
        told = "".join(message.text for message in messages)
        mode = max(MODES, key=lambda mode: told.rfind(f"You are in {mode.title()} mode now."))
        answer = result.generations[0].message
        assert isinstance(answer, AIMessage)
        self.answers += 1
        for call in answer.tool_calls:  # sub-tasks would have the same ids
            call["id"] = f"{call['id']}_{self.answers}"
        self.mode_of.update({str(call["id"]): mode for call in answer.tool_calls})
        return result

    def _answer(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = max(n for n, m in enumerate(messages) if isinstance(m, HumanMessage))
        if not messages[last].text.startswith("["):
            return super()._generate(messages, *args, **kwargs)
        steps = json.loads(remove_instructions(messages[last].text))
        taken = sum(isinstance(message, AIMessage) for message in messages[last:])
        number = sum(isinstance(message, AIMessage) for message in messages)
        calls = steps[taken] if taken < len(steps) else []
        message = AIMessage(
            "" if calls else "done",
            tool_calls=[
                {"name": name, "args": args, "id": f"json_{number}_{index}"}
                for index, (name, args) in enumerate(calls)
            ],
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


class Recorder(AsyncCallbackHandler):
    """Records which tool ran on what."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str, dict[str, Any]]] = []

    @override
    async def on_tool_start(self, serialized: dict[str, Any], input_str: str, **more: Any) -> None:
        self.ran.append((str(more["tool_call_id"]), serialized["name"], more["inputs"] or {}))


def may_run(mode: str, name: str, args: dict[str, Any]) -> bool:
    if name in ("write_file", "edit_file"):
        path = posixpath.normpath(args["path"])
        if "\n" in path or path.startswith(".."):
            return False
        return mode in ("code", "debug") or (mode == "architect" and path.endswith(".md"))
    if name == "execute_command":
        return mode in ("code", "debug")
    return name in ("read_file", "list_files", "update_todo_list", "attempt_completion")


def as_run(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with the path as it is resolved and without those that were not given."""
    known = {key: value for key, value in args.items() if value is not None}
    return known | {"path": posixpath.normpath(args["path"])} if "path" in args else known


class Promises(RuleBasedStateMachine):
    """A person, a model and a host, each doing as they please."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        workspace = self.folder / "workspace"
        workspace.mkdir()
        self.runner = asyncio.Runner()
        self.recorder = Recorder()
        self.model = UnboundModel()
        self.talk = Conversation(make_agent(workspace, self.model))
        self.talk.config["callbacks"] = [self.recorder]
        self.approvals = "manual"
        self.approved: dict[str, dict[str, Any]] = {}
        self.chosen: list[str] = []
        """The modes of approved switches and sub-tasks that have not begun."""
        self.set = "ask"
        """The mode that the host set last."""
        self.seen = self.changes = 0
        self.is_asked = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    @override
    def teardown(self) -> None:
        self.runner.close()
        shutil.rmtree(self.folder)

    @rule(data=st.data(), text=LINES | STEPS.map(json.dumps), times=st.integers(0, 2))
    def says(self, data: st.DataObject, text: str, times: int) -> None:
        self.run(self.talk.say(text))
        self.decides(data, times)

    @rule(data=st.data(), text=st.sampled_from(DELEGATIONS), times=st.integers(1, 4))
    def delegates(self, data: st.DataObject, text: str, times: int) -> None:
        self.run(self.talk.say(text))
        self.decides(data, times)

    @precondition(lambda self: self.is_asked)
    @rule(data=st.data(), times=st.integers(1, 4))
    def answers(self, data: st.DataObject, times: int) -> None:
        self.decides(data, times)

    def decides(self, data: st.DataObject, times: int) -> None:
        for _ in range(times):
            if waiting := self.run(self.talk.waiting()):
                self.decide(data, waiting)

    def decide(self, data: st.DataObject, waiting: list[dict[str, Any]]) -> None:
        decisions = [data.draw(self.decision(request)) for request in waiting]
        for request, decision in zip(waiting, decisions, strict=True):
            args = decision.get("edited_action", {}).get("args", request["args"])
            if decision["type"] in ("approve", "edit"):
                self.approved[request["id"]] = args
                if "mode_slug" in args:
                    self.chosen.append(args["mode_slug"])
            elif decision.get("message", "").endswith("(switch to code)"):
                self.chosen.append("code")
        self.run(self.talk.decide(*decisions))

    def decision(self, request: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        name = request["name"]
        reject = st.just({"type": "reject", "message": "no"})
        if name == "ask_followup_question":
            answers = st.sampled_from(["yes", "y", "y (switch to code)"])
            return reject | answers.map(lambda text: {"type": "respond", "message": text})
        args = request["args"]
        others = [args]
        if name == "switch_mode":
            others = [{"mode_slug": slug, "reason": "no, this"} for slug in MODES]
        elif name == "new_task":
            others = [{**args, "mode_slug": slug} for slug in MODES]
        elif "path" in args:
            others = [{**args, "path": path} for path in PATHS]
        edited = st.sampled_from(others).map(lambda other: edit(name, **other))
        return st.one_of(*[st.just(APPROVE)] * 3, edited, reject)

    @rule(setting=HOST, text=st.none() | LINES)
    def host_sets(self, setting: dict[str, Any], text: str | None) -> None:
        self.set = setting.get("mode", self.set)
        self.approvals = setting.get("approvals", self.approvals)
        more = {} if text is None else {"messages": [{"role": "user", "content": text}]}
        self.run(self.talk.send(setting | more))
        if "end_subtask" in setting:
            assert self.run(self.talk.values()).get("subtask") is None

    @rule(mode=st.sampled_from(MODES))
    def host_updates_the_state(self, mode: str) -> None:
        waiting = self.run(self.talk.waiting())
        if self.run(self.talk.values()):
            self.set = mode
            self.run(self.talk.agent.aupdate_state(self.talk.config, {"mode": mode}))
            # Either way to go on: as one answers an interrupt, or as one says something new.
            self.run(self.talk.send(None if waiting else {"approvals": self.approvals}))

    @invariant()
    def nothing_ran_that_may_not(self) -> None:
        fresh, self.seen = self.recorder.ran[self.seen :], len(self.recorder.ran)
        for id, name, args in fresh:
            assert may_run(self.model.mode_of[id], name, args), (id, name, args)
            needs = name == "execute_command" or (
                name in ("write_file", "edit_file") and self.approvals == "manual"
            )
            if needs:
                assert as_run(self.approved[id]) == as_run(args)
        ids = [id for id, _, _ in self.recorder.ran]
        assert len(ids) == len(set(ids)), "a call ran twice"

    @invariant()
    def the_mode_is_what_a_person_or_the_host_made_it(self) -> None:
        values = self.run(self.talk.values())
        if not values:
            return
        records = values["mode_changes"]
        fresh, self.changes = records[self.changes :], len(records)
        for record in fresh:
            match record["decided_by"]:
                case "human":
                    assert record["target"] in self.chosen
                    self.chosen.remove(record["target"])
                case "host":
                    assert record["target"] == self.set
                case _:
                    assert record["reason"] == "the sub-task has ended"
                    assert record["target"] in [record["source"] for record in records]
        assert values["mode"] == (records[-1]["target"] if records else "ask")
        if not values["parents"]:
            self.chosen.clear()

    @invariant()
    def a_sub_task_keeps_its_mode_but_for_the_host(self) -> None:
        values = self.run(self.talk.values())
        if (subtask := values.get("subtask")) and values["mode"] != subtask["mode"]:
            assert values["mode"] == self.set

    @invariant()
    def every_call_has_one_answer(self) -> None:
        messages = self.run(self.talk.messages())
        waiting = self.run(self.talk.waiting())
        assert problems(messages) == []
        for subtask in self.run(self.talk.values()).get("subtasks", []):
            assert problems(subtask["messages"]) == []
        self.is_asked = bool(waiting)
        if not waiting and messages:
            last = messages[-1]
            assert not (isinstance(last, AIMessage) and last.tool_calls)


Promises.TestCase.settings = settings(max_examples=15, stateful_step_count=10, derandomize=True)
TestPromises = pytest.mark.slow(Promises.TestCase)
