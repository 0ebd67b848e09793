"""Whatever is said, decided and set, in whatever order: the guarantees hold.

What each mode may do is written down once more, in ``may_run``, without the project's own rules, so
that a mistake in them shows.
"""

import asyncio
import json
import posixpath
import shutil
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from typing_extensions import override

from graph.models.offline import OfflineModel
from tests.harness.conversation import Conversation, make_agent, problems

T = TypeVar("T")
MODES = ("ask", "architect", "code", "debug")
PATHS = st.sampled_from(
    ["a.txt", "plan.md", "plan.md/../a.py", "sub/x.md", "../out.md", "PLAN.MD", "a.md\n", ""]
)
CALLS = st.one_of(
    PATHS.map(lambda path: ["read_file", {"path": path}]),
    PATHS.map(lambda path: ["write_file", {"path": path, "content": "x"}]),
    PATHS.map(lambda path: ["edit_file", {"path": path, "old": "x", "new": "y"}]),
    st.just(["execute_command", {"command": "echo x >> log.txt"}]),
    st.sampled_from([*MODES, "kode"]).map(
        lambda slug: ["switch_mode", {"mode_slug": slug, "reason": "because"}]
    ),
    st.just(
        ["ask_followup_question", {"question": "?", "follow_up": [{"text": "y", "mode": "code"}]}]
    ),
    st.just(["update_todo_list", {"todos": [{"content": "x"}]}]),
    st.just(["attempt_completion", {"result": "done"}]),
    st.just(["no_such_tool", {}]),
    st.just(["write_file", {"content": 5}]),
)
LINES = st.sampled_from(
    [
        "hello",
        "write plan.md: x",
        "read a.txt & write b.txt: y & switch to debug",
        "write a.txt: x & read a.txt & switch to code & list",
        "run echo x >> log.txt & switch to architect",
        "write a.txt: 1\nrun cat a.txt\nswitch to ask\nlist",
        "todo: a; b\nask: Which?\ndone: it",
        "replace x with y in a.txt & read a.txt",
    ]
)


class UnboundModel(OfflineModel):
    """The offline model, but a user message in JSON makes it call anything at all."""

    @override
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = max(n for n, m in enumerate(messages) if isinstance(m, HumanMessage))
        if not messages[last].text.startswith("["):
            return super()._generate(messages, *args, **kwargs)
        steps = json.loads(messages[last].text)
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
    """Records which tool ran on what, and in which mode its call was written."""

    def __init__(self) -> None:
        self.mode_of: dict[str, str] = {}
        self.ran: list[tuple[str, str, dict[str, Any]]] = []
        self._modes: dict[UUID, str] = {}

    @override
    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        prompt = messages[0][0].text
        self._modes[run_id] = next(m for m in MODES if f"You are in {m.title()} mode" in prompt)

    @override
    async def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        for call in response.generations[0][0].message.tool_calls:
            self.mode_of[call["id"]] = self._modes[run_id]

    @override
    async def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.ran.append((str(kwargs["tool_call_id"]), serialized["name"], inputs or {}))


def may_run(mode: str, name: str, args: dict[str, Any]) -> bool:
    if name in ("write_file", "edit_file"):
        path = posixpath.normpath(args["path"])
        if "\n" in path or path.startswith(".."):
            return False
        return mode in ("code", "debug") or (mode == "architect" and path.endswith(".md"))
    if name == "execute_command":
        return mode in ("code", "debug")
    return name in ("read_file", "list_files", "update_todo_list", "attempt_completion")


class Promises(RuleBasedStateMachine):
    """A person, a model and a host, each doing as they please."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        workspace = self.folder / "workspace"
        workspace.mkdir()
        self.runner = asyncio.Runner()
        self.recorder = Recorder()
        self.talk = Conversation(make_agent(workspace, UnboundModel()))
        self.talk.config["callbacks"] = [self.recorder]
        self.mode = "ask"
        self.approvals = "manual"
        self.approved: dict[str, dict[str, Any]] = {}
        self.switches = 0
        self.seen = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    @override
    def teardown(self) -> None:
        self.runner.close()
        shutil.rmtree(self.folder)

    @rule(text=LINES)
    def says(self, text: str) -> None:
        self.run(self.talk.say(text))

    @rule(steps=st.lists(st.lists(CALLS, min_size=1, max_size=4), min_size=1, max_size=3))
    def makes_the_model_call(self, steps: list[list[Any]]) -> None:
        self.run(self.talk.say(json.dumps(steps)))

    @rule(data=st.data())
    def decides(self, data: st.DataObject) -> None:
        waiting = self.run(self.talk.waiting())
        if not waiting:
            return
        decisions = [data.draw(self.decision(request)) for request in waiting]
        chosen = None
        for request, decision in zip(waiting, decisions, strict=True):
            args = decision.get("edited_action", {}).get("args", request["args"])
            if decision["type"] in ("approve", "edit"):
                self.approved[request["id"]] = args
                if request["name"] == "switch_mode" and args["mode_slug"] != self.mode:
                    chosen = args["mode_slug"]
            elif decision.get("message", "").endswith("(switch to code)"):
                chosen = chosen or ("code" if self.mode != "code" else None)
        if chosen is not None:
            self.mode = chosen
            self.switches += 1
        self.run(self.talk.decide(*decisions))

    def decision(self, request: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        name = request["name"]
        reject = st.just({"type": "reject", "message": "no"})
        if name == "ask_followup_question":
            answers = st.sampled_from(["yes", "y", "y (switch to code)"])
            return reject | answers.map(lambda text: {"type": "respond", "message": text})
        other: st.SearchStrategy[dict[str, Any]] = st.just(request["args"])
        if name == "switch_mode":
            other = st.sampled_from(MODES).map(
                lambda slug: {"mode_slug": slug, "reason": "no, this"}
            )
        elif "path" in request["args"]:
            other = PATHS.map(lambda path: {**request["args"], "path": path})
        edit = other.map(
            lambda args: {"type": "edit", "edited_action": {"name": name, "args": args}}
        )
        approve: st.SearchStrategy[dict[str, Any]] = st.just({"type": "approve"})
        return st.one_of(approve, approve, approve, edit, reject)

    @rule(mode=st.sampled_from(MODES), text=st.none() | LINES)
    def host_sets_the_mode(self, mode: str, text: str | None) -> None:
        self.switches += mode != self.mode
        self.mode = mode
        given: dict[str, Any] = {"mode": mode}
        if text is not None:
            given["messages"] = [{"role": "user", "content": text}]
        self.run(self.talk.send(given))

    @rule(mode=st.sampled_from(MODES))
    def host_updates_the_state(self, mode: str) -> None:
        waiting = self.run(self.talk.waiting())
        if self.run(self.talk.values()):
            self.switches += mode != self.mode
            self.mode = mode
            self.run(self.talk.agent.aupdate_state(self.talk.config, {"mode": mode}))
            # Either way to go on: as one answers an interrupt, or as one says something new.
            self.run(self.talk.send(None if waiting else {"approvals": self.approvals}))

    @rule(policy=st.sampled_from(["manual", "auto"]))
    def host_sets_approvals(self, policy: str) -> None:
        self.approvals = policy
        self.run(self.talk.send({"approvals": policy}))

    @rule(slug=st.sampled_from(["kode", "", "Ask"]))
    def host_errs(self, slug: str) -> None:
        try:
            self.run(self.talk.send({"mode": slug}))
        except ValueError as error:
            assert repr(slug) in str(error)
        else:
            raise AssertionError(slug)

    @invariant()
    def nothing_ran_that_may_not(self) -> None:
        fresh, self.seen = self.recorder.ran[self.seen :], len(self.recorder.ran)
        for id, name, args in fresh:
            assert may_run(self.recorder.mode_of[id], name, args), (id, name, args)
            needs = name == "execute_command" or (
                name in ("write_file", "edit_file") and self.approvals == "manual"
            )
            if needs:
                assert self.approved[id] == args
        ids = [id for id, _, _ in self.recorder.ran]
        assert len(ids) == len(set(ids)), "a call ran twice"

    @invariant()
    def the_mode_is_what_a_person_or_the_host_made_it(self) -> None:
        values = self.run(self.talk.values())
        if values:
            assert values["mode"] == self.mode
            assert len(values["mode_changes"]) == self.switches

    @invariant()
    def every_call_has_one_answer(self) -> None:
        messages: Sequence[BaseMessage] = self.run(self.talk.messages())
        waiting = self.run(self.talk.waiting())
        found = problems(list(messages))
        assert found == []
        if not waiting and messages:
            last = messages[-1]
            assert not (isinstance(last, AIMessage) and last.tool_calls)


Promises.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
TestPromises = Promises.TestCase
