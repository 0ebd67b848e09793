"""``EditorSession``: a thread that is open in an editor; its turns are taken one at a time."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from acp.schema import StopReason
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig

from modeshift.configuration.loading import AgentCache
from modeshift.editor.asking import EditorGone, TurnDismissed
from modeshift.editor.files import EditorFiles, McpServer, take_servers
from modeshift.editor.options import Options
from modeshift.editor.session_config import SessionConfig
from modeshift.editor.store import Record, Sessions
from modeshift.editor.transport import Editor
from modeshift.editor.turn import Prompt, PromptBlock, Turn, parse_choice
from modeshift.events import COMPACTING
from modeshift.messages.normal_form import get_call_id
from modeshift.modes.policy import Approvals
from modeshift.threads.mailbox import StateValues
from modeshift.threads.routing import is_cut_off
from modeshift.threads.state import Subtask
from modeshift.turns.undo import BACK, LAST, describe_undo

CUT_OFF = "The last turn was interrupted. A message, such as 'go on', goes on with it.\n\n"
WAITS = "\n\n> This waits for you, and is asked with your next message.\n\n"
CLEANUP_SECONDS = 2
"""How long a cancelled turn may take to clean up before its end is reported all the same."""


class EditorSession:
    """A process has one for each id; it can be closed and opened again."""

    def __init__(self, editor: Editor, record: Record, agents: AgentCache, store: Sessions) -> None:
        self.id = record.id
        self.is_open = False
        self._editor = editor
        self._store = store
        self._config = SessionConfig(editor, record, agents, store)
        self._updates = self._config.updates
        self._lock = asyncio.Lock()
        self._turns: dict[asyncio.Task[StopReason], Turn] = {}
        """The turns that are running or waiting."""
        self._follow_up: asyncio.Task[None] | None = None
        self._holds_question = False
        """Whether a question waits that this editor has not been asked since it opened it."""
        self._untold: list[str] = []
        """Notices that the next turn shows."""

    async def open(self, folder: Path, servers: Sequence[McpServer]) -> None:
        """Read what is stored, for the ``folder`` as the editor names it; raises ``UserError``."""
        self._updates.folder = replace(self._updates.folder, named=folder)
        self._config.servers, refused = take_servers(servers)
        if refused:
            self._untold = [f"MCP servers of the editor that are left out: {'; '.join(refused)}"]
        await self._config.refresh()
        if not self._config.record.updated:
            await self._config.change()  # a new one is stored
        has_question = await self._config.open_question() is not None
        self._holds_question = has_question and not self._turns
        self.is_open = True

    def describe(self, *, is_replayed: bool = False) -> dict[str, object]:
        """The options for the response to new, load and resume.

        What follows it is sent later: until then the client does not know the session.
        """
        described = self._config.describe()
        self._follow_up = asyncio.create_task(self._begin(is_replayed=is_replayed))
        return described

    async def _begin(self, *, is_replayed: bool) -> None:
        await self._config.show()
        if not is_replayed:
            await self._show_question()

    async def _show_question(self) -> None:
        state = await self._config.thread.state()
        if is_cut_off(state.values, state.tasks, state.interrupts) and not self._turns:
            await self._updates.say(CUT_OFF)
        question = await self._config.open_question()
        if self._holds_question and question is not None:  # who opens a session may not look
            for request in question.value["action_requests"]:
                await self._updates.say_plainly(request["description"])
            await self._updates.say(WAITS)

    async def replay(self) -> None:
        """Send the whole history."""
        values = (await self._config.thread.state()).values
        parts = await read_conversations(self._config, values)
        begun = (values.get("due_calls") or [[]])[0]
        self._updates.cut_off = frozenset(get_call_id(planned["call"]) for planned in begun)
        await self._updates.replay(parts)
        if todos := values.get("todos"):
            await self._updates.show_todos(todos)
        await self._show_question()

    async def choose(self, option: str, value: object) -> Options:
        """Take a choice, from the next step on; raises ``UserError`` for one that is refused."""
        with self._store.claim(self.id):
            if await self._is_default(option, value):
                typed = value if option == "mode" else f"{option} {value}"
                words = f"Not set to {value} while the question waits; type /{typed} if you want it"
                self._untold.append(words)
            else:
                await self._config.choose(option, value)
        return self._config.options

    async def _is_default(self, option: str, value: object) -> bool:
        """Whether the editor may have chosen this by itself: Zed does in each session it opens.

        That must not withdraw the question, nor run a call that the person was to see first.
        """
        is_risky = option == "mode" or (option, value) == ("approvals", Approvals.AUTO)
        is_held = self._holds_question and await self._config.open_question() is not None
        return is_held and is_risky

    async def prompt(self, blocks: Sequence[PromptBlock]) -> StopReason:
        """Take a turn on a message, after those before it.

        Raises ``UserError`` for a message that is refused.
        """
        for notice in self._untold:
            await self._updates.show_notice(notice)
        self._untold = []
        options = self._config.options
        if (choice := parse_choice(blocks, options)) is not None:
            await self._obey(*choice)
            return "end_turn"
        task = self._start(Prompt.parse(blocks, options, self._updates.folder))
        await self._turns[task].is_over.wait()
        # A turn that was cancelled before it began has no result.
        return task.result() if task.done() and not task.cancelled() else "cancelled"

    async def _obey(self, option: str, value: str) -> None:
        """Take a choice that was typed; without a value, show what is chosen."""
        if option in ("allowed", "undo"):
            show = self._config.list_allowed if option == "allowed" else self._undo
            await self._updates.say_plainly(await show(value))
            return
        if value:
            with self._store.claim(self.id):
                await self._config.choose(option, value)
        await self._updates.say(self._config.options.describe(option))

    async def _undo(self, value: str) -> str:
        """Describe an undo; do it if ``value`` has the digest of what was shown."""
        back, digest = BACK * value.startswith(BACK), value.removeprefix(BACK).strip()
        with self._store.claim(self.id):
            await self._config.refresh()
            preview = await self._config.thread.undo(back or LAST, digest or None)
            await self._config.refresh()
            await self._config.show()
        done = f"What you see above of it is undone, too; /undo {BACK} goes back to before that."
        command = " ".join(filter(None, ("/undo", back, preview["digest"])))
        last = done if digest else f"{command} does it."
        deps, first = await self._config.thread.deps(), "Done" if digest else "Undo"
        return "\n".join([*describe_undo(deps, preview, first), last])

    def cancel(self) -> None:
        """Cancel the turn that goes on, and those behind it."""
        for task, turn in self._turns.items():
            task.cancel()
            asyncio.get_running_loop().call_later(CLEANUP_SECONDS, turn.is_over.set)

    async def close(self) -> None:
        """Cancel all turns, and wait until they have ended."""
        self.is_open = False
        if self._follow_up is not None:
            self._follow_up.cancel()
        self.cancel()
        if self._turns:
            await asyncio.wait(self._turns, timeout=CLEANUP_SECONDS)

    async def leave(self) -> None:
        """Close because the editor is gone: an open question stays open."""
        for turn in self._turns.values():
            turn.keeps_question = True
        await self.close()

    def _start(self, prompt: Prompt) -> asyncio.Task[StopReason]:
        files = EditorFiles(self._editor, self.id, self._updates.folder)
        turn = Turn(prompt, self._config, files, self._holds_question)
        self._holds_question = False
        task = asyncio.create_task(self._run_turn(turn))
        self._turns[task] = turn

        def end(_: asyncio.Task[StopReason]) -> None:
            del self._turns[task]
            turn.is_over.set()

        task.add_done_callback(end)
        return task

    async def _run_turn(self, turn: Turn) -> StopReason:
        """Run the turn after those before it; refused while another process has the session."""
        try:
            async with self._lock:
                with self._store.claim(self.id):
                    return await turn.run()
        except (asyncio.CancelledError, TurnDismissed, EditorGone):
            return "cancelled"


History = tuple[Subtask | None, list[AnyMessage]]


async def read_conversations(config: SessionConfig, values: StateValues) -> list[History]:
    """The conversations with what summaries have replaced, which is in earlier checkpoints."""
    states, now = [values], _list_conversations(values)
    if any(isinstance(message, AIMessage) for _, messages in now for message in messages[:1]):
        wanted: RunnableConfig | None = None  # not what was undone
        async for state in config.loaded.agent.aget_state_history(config.thread.config):
            if wanted is None or state.config == wanted:
                wanted = state.parent_config
                states += [state.values] if state.next == (COMPACTING,) else []
    histories = defaultdict[object, dict[str | None, AnyMessage]](dict)
    for subtask, messages in chain(*map(_list_conversations, reversed(states))):
        known = histories[subtask and subtask["id"]]
        known.update({message.id: message for message in messages if message.id not in known})
    return [(subtask, [*histories[subtask and subtask["id"]].values()]) for subtask, _ in now]


def _list_conversations(values: StateValues) -> list[History]:
    """The conversations that wait for a sub-task, and the one that goes on."""
    waiting = [(parent["subtask"], parent["messages"]) for parent in values.get("parents", [])]
    return [*waiting, (values.get("subtask"), values.get("messages", []))]
