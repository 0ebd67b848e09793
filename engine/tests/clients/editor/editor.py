"""An editor: the SDK's client side, connected to the real process by pipes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from acp import Client, RequestError, schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent

from tests.clients.editor.process import AgentProcess, agent_process
from tests.clients.editor.schema import check
from tests.harness.conversation import SECONDS
from tests.harness.place import environment
from tests.harness.root import TEMPLATE

Answer = Callable[..., Awaitable[str | None]]
FILES = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
)
ALL = FILES.model_copy(
    update={
        "elicitation": schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()),
        "field_meta": {"terminal_output": True},  # as Zed says it
    }
)
"""What an editor may offer: files, forms, terminals."""
WAIT_FOR_GO = "while ! test -e go; do sleep 0.02; done"


def choosing(*ids: str) -> Answer:
    """The options to choose, one after another; the last one from then on."""
    left = list(ids)

    async def answer(*_: Any) -> str | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


async def never(*_: Any) -> str | None:
    """Leave the dialog open, as Toad does when its user has cancelled."""
    await asyncio.Event().wait()
    return None


async def dismiss(*_: Any) -> str | None:
    """Close the dialog."""
    return None


def text(said: str) -> schema.TextContentBlock:
    return schema.TextContentBlock(type="text", text=said)


class Editor:
    """What the client side of the protocol is called with, and what it saw."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[str, schema.ToolCallUpdate, list[schema.PermissionOption]]] = []
        self.filled: dict[str, Any] | str = "cancel"
        """The answer to a form: its content, or "decline", or "cancel"."""
        self.forms: list[tuple[str, Any]] = []
        self.updates: list[tuple[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.buffers: dict[str, str] = {}
        """Unsaved text, by path."""
        self.reads: list[str] = []
        self.writes: list[tuple[str, str]] = []
        self.before_reading: Callable[[], Awaitable[None]] | None = None
        self.has_news = asyncio.Event()
        self.agent: ClientSideConnection
        self.process: AgentProcess
        self.log: Path

    def reset(self, answer: Answer = dismiss) -> None:
        """Forget what a test before this one has done."""
        self.answer, self.before_reading = answer, None
        for seen in (
            self.asked, self.forms, self.updates, self.reads, self.writes, self.buffers,
        ):  # fmt: skip
            cast("Any", seen).clear()

    def on_connect(self, conn: Any) -> None:
        pass

    def observe(self, event: StreamEvent) -> None:
        side = "agent" if event.direction is StreamDirection.INCOMING else "editor"
        message = dict(event.message)
        if "id" in message:
            other = "editor" if side == "agent" else "agent"
            message["id"] = f"{side if 'method' in message else other} {message['id']}"
        self.messages.append(message)

    def list_raw(self, method: str) -> list[dict[str, Any]]:
        """The messages of a method, of both sides."""
        return [message for message in self.messages if message.get("method") == method]

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self.has_news.set()

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """As the agent sends an update, where no connection is between the two."""
        assert method == "session/update"
        update = schema.SessionNotification.model_validate(params)
        await self.session_update(update.session_id, update.update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_: Any,
    ) -> schema.RequestPermissionResponse:
        self.asked.append((session_id, tool_call, options))
        self.has_news.set()
        chosen = await self.answer(tool_call, options)
        outcome: Any = schema.DeniedOutcome(outcome="cancelled")
        if chosen is not None:
            outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode))
        if isinstance(self.filled, dict):
            return schema.AcceptElicitationResponse(action="accept", content=self.filled)
        if self.filled == "decline":
            return schema.DeclineElicitationResponse(action="decline")
        return schema.CancelElicitationResponse(action="cancel")

    async def read_text_file(
        self, session_id: str, path: str, **_: Any
    ) -> schema.ReadTextFileResponse:
        self.reads.append(path)
        self.has_news.set()
        if self.before_reading is not None:
            await self.before_reading()
        try:
            content = self.buffers.get(path) or Path(path).read_text()
        except OSError as error:
            raise RequestError.resource_not_found(path) from error
        return schema.ReadTextFileResponse(content=content)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> schema.WriteTextFileResponse:
        self.writes.append((path, content))
        self.buffers.pop(path, None)
        Path(path).write_text(content)
        return schema.WriteTextFileResponse()

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something has been seen."""
        async with asyncio.timeout(SECONDS):
            while not holds():
                self.has_news.clear()
                await self.has_news.wait()

    async def talk(self, cwd: Path, mode: str = "ask", **options: str) -> "Talk":
        """A new session."""
        opened = await self.agent.new_session(cwd=str(cwd), mcp_servers=[])
        talk = Talk(self, opened.session_id, cwd, opened)
        for option, value in {**({"mode": mode} if mode != "ask" else {}), **options}.items():
            await talk.choose(option, value)
        return talk

    async def load(self, talk: "Talk", *, resume: bool = False) -> "Talk":
        """A session of this or of another process."""
        method = self.agent.resume_session if resume else self.agent.load_session
        opened = await method(cwd=str(talk.cwd), session_id=talk.id, mcp_servers=[])
        return Talk(self, talk.id, talk.cwd, opened)

    async def list(self, **given: Any) -> list[schema.SessionInfo]:
        return list((await self.agent.list_sessions(**given)).sessions)


class Talk:
    """One session in an editor."""

    def __init__(self, editor: Editor, id: str, cwd: Path, opened: Any) -> None:
        self.editor = editor
        self.agent = editor.agent
        self.id = id
        self.cwd = cwd
        self.opened = opened

    @property
    def answer(self) -> Answer:
        """How the editor's user answers questions."""
        return self.editor.answer

    @answer.setter
    def answer(self, answer: Answer) -> None:
        self.editor.answer = answer

    async def say(self, *said: Any) -> str:
        """A message, to the end of its turn; the stop reason."""
        blocks = [text(block) if isinstance(block, str) else block for block in said]
        async with asyncio.timeout(SECONDS):
            return (await self.agent.prompt(prompt=blocks, session_id=self.id)).stop_reason

    async def begin(self, said: str, seen: Callable[[], Any]) -> asyncio.Task[str]:
        """A message whose turn goes on; returns once ``seen`` holds."""
        turn = asyncio.create_task(self.say(said))
        await self.editor.until(seen)
        return turn

    async def begin_asking(self, said: str) -> asyncio.Task[str]:
        """A message whose turn waits for a person."""
        self.editor.answer, before = never, len(self.asked)
        return await self.begin(said, lambda: len(self.asked) > before)

    async def choose(self, option: str, value: Any) -> None:
        await self.agent.set_config_option(session_id=self.id, config_id=option, value=value)

    async def send(self, method: str, **params: Any) -> None:
        """A notification that the SDK has no method for."""
        connection: Any = self.agent
        await connection._conn.send_notification(method, params)

    async def cancel(self) -> None:
        await self.agent.cancel(session_id=self.id)

    async def close(self) -> None:
        await self.agent.close_session(session_id=self.id)

    async def replayed(self) -> "Talk":
        """The same session, closed and loaded: the updates seen then are its history."""
        await self.close()
        self.editor.updates.clear()
        return await self.editor.load(self)

    async def stored(self) -> tuple[str, str]:
        """The mode and the approvals, as they are when the session is opened again."""
        await self.close()
        return shown_in((await self.editor.load(self, resume=True)).opened)

    @property
    def shown(self) -> tuple[str, str]:
        """The mode and the approvals, as the editor shows them."""
        mode, approvals = shown_in([self.opened, *self.of("config_option_update")][-1])
        modes = [update.current_mode_id for update in self.of("current_mode_update")]
        assert modes[-1:] in ([], [mode])
        return mode, approvals

    @property
    def asked(self) -> list[schema.ToolCallUpdate]:
        """The calls that a person was asked about."""
        return [call for id, call, _ in self.editor.asked if id == self.id]

    @property
    def kinds_asked(self) -> list[Any]:
        return [call.kind for call in self.asked]

    @property
    def options_asked(self) -> list[list[str]]:
        """The names of the options of each question."""
        return [
            [option.name for option in options]
            for id, _, options in self.editor.asked
            if id == self.id
        ]

    def of(self, kind: str) -> list[Any]:
        """The updates of a kind, in order."""
        return [
            update for id, update in self.editor.updates
            if update.session_update == kind and id == self.id
        ]  # fmt: skip

    @property
    def said(self) -> str:
        """All that the agent said."""
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    def has_printed(self) -> bool:
        """Whether a command has printed ``begun``."""
        return "text='```\\nbegun" in str(self.of("tool_call_update"))

    @property
    def calls(self) -> list[tuple[str, list[str]]]:
        """The title and the statuses of each tool call."""
        titles, statuses = dict[str, str](), dict[str, list[str]]()
        for id, update in self.editor.updates:
            if id == self.id and update.session_update.startswith("tool_call"):
                titles[update.tool_call_id] = update.title or titles[update.tool_call_id]
                statuses.setdefault(update.tool_call_id, []).append(update.status)
        return [(title, statuses[id]) for id, title in titles.items()]

    @property
    def ends(self) -> list[tuple[str, str]]:
        """The title and the last status of each tool call."""
        return [(title, statuses[-1]) for title, statuses in self.calls]

    @property
    def results(self) -> list[Any]:
        """The content of each update about a tool call that has ended."""
        updates = [*self.of("tool_call"), *self.of("tool_call_update")]
        return [update.content for update in updates if update.status in ("completed", "failed")]


def shown_in(opened: Any) -> tuple[str, str]:
    """The mode and the approvals of a response or an update."""
    values = {option.id: option.current_value for option in opened.config_options}
    modes = getattr(opened, "modes", None)
    assert modes is None or modes.current_mode_id == values["mode"]
    return values["mode"], values["approvals"]


@asynccontextmanager
async def editing(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    answer: Answer = dismiss,
    offered: schema.ClientCapabilities | None = None,
    shows: Sequence[str] = (),
    clone: Path = TEMPLATE,
) -> AsyncIterator[Editor]:
    """An editor with its agent, initialized; every message is checked against the schema.

    ``shows`` are capabilities of a session that the SDK does not know.
    """
    editor = Editor(answer)
    editor.log = folder / "log.txt"
    environ = {"MODEL": "offline", **(settings or {})}
    async with agent_process(environment(folder, **environ), editor.log, folder=clone) as process:
        editor.process = process
        editor.agent = ClientSideConnection(
            cast("Client", editor),
            process.stdin,
            process.stdout,
            observers=[editor.observe],
            use_unstable_protocol=True,
        )
        try:
            offered = offered or schema.ClientCapabilities(fs=schema.FileSystemCapabilities())
            able = offered.model_dump(by_alias=True, exclude_none=True)
            given = {**able, "session": {name: {} for name in shows}} if shows else able
            connection: Any = editor.agent
            await connection._conn.send_request(
                "initialize", {"protocolVersion": 1, "clientCapabilities": given}
            )
            yield editor
        finally:
            await editor.agent.close()
    check(editor.messages)
