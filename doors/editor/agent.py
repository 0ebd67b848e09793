"""``EditorAgent``: the methods of the Agent Client Protocol."""

import asyncio
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from doors.editor.agent_cache import AgentCache
from doors.editor.content import PromptBlock
from doors.editor.session import Session
from doors.editor.store import Record, Sessions
from modes.errors import InvalidInputError, UserError

NOT_FOUND = -32002


class EditorAgent:
    """One to a connection. The SDK finds the methods by their names."""

    def __init__(self, agents: AgentCache, sessions: Sessions) -> None:
        self._agents = agents
        self._sessions = sessions
        self._open: dict[str, Session] = {}
        self._files = FileSystemCapabilities()
        self._later = set[asyncio.Task[None]]()
        self._client: Client

    def on_connect(self, client: Client) -> None:
        """Where updates and questions go."""
        self._client = client

    async def initialize(
        self, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        """The protocol's version is 1, whatever the client asks for."""
        if client_capabilities is not None and client_capabilities.fs is not None:
            self._files = client_capabilities.fs
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(
                name="modeshift", title="Modeshift", version=version("modeshift")
            ),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """There is nothing to log in to: a provider's key is in the settings."""
        raise RequestError(-32602, f"there is no way to authenticate, {method_id[:100]!r} or other")

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """A session in the folder ``cwd``."""
        with _refusing():
            session = self._session(Record.new(str(_folder(cwd))))
            await session.open(Path(cwd))
            await session.keep()
        self._open[session.id] = session
        options = session.opened()
        self._say_later(session)
        return NewSessionResponse(
            session_id=session.id,
            modes=options.mode_state(),
            config_options=options.config(),
        )

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """The session of another day, told from its beginning."""
        session = await self._reopened(cwd, session_id)
        await session.replay()
        options = session.opened()
        self._say_later(session)
        return LoadSessionResponse(modes=options.mode_state(), config_options=options.config())

    async def resume_session(self, cwd: str, session_id: str, **_: Any) -> ResumeSessionResponse:
        """The session of another day, of which the client has the history."""
        session = await self._reopened(cwd, session_id)
        options = session.opened()
        self._say_later(session)
        return ResumeSessionResponse(modes=options.mode_state(), config_options=options.config())

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        """The latest first, a page at a time."""
        with _refusing():
            folder = None if cwd is None else str(_absolute(cwd))
            records, after = await self._sessions.page(folder, cursor)
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=one.id, cwd=cwd or one.cwd, title=one.title, updated_at=one.updated
                )
                for one in records
            ],
            next_cursor=after,
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """End what it does; it can be loaded again."""
        session = self._known(session_id)
        del self._open[session_id]
        await session.close()
        return CloseSessionResponse()

    async def set_session_mode(
        self, mode_id: str, session_id: str, **_: Any
    ) -> SetSessionModeResponse:
        """The user's choice of a mode."""
        session = self._known(session_id)
        with _refusing():
            await session.choose("mode", mode_id)
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """The user's choice of a mode, a model or the approvals."""
        session = self._known(session_id)
        with _refusing():
            options = await session.choose(config_id, value)
        return SetSessionConfigOptionResponse(config_options=options.config())

    async def prompt(
        self, prompt: Sequence[PromptBlock], session_id: str, **_: Any
    ) -> PromptResponse:
        """A turn."""
        session = self._known(session_id)
        with _refusing():
            return PromptResponse(stop_reason=await session.prompt(prompt))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the turn, at once."""
        if session_id in self._open:
            self._open[session_id].cancel()

    async def leave(self) -> None:
        """The client has gone."""
        for task in self._later:
            task.cancel()
        await asyncio.gather(*(session.leave() for session in self._open.values()))

    def _session(self, record: Record) -> Session:
        return Session(self._client, record, self._agents, self._sessions, self._files)

    async def _reopened(self, cwd: str, session_id: str) -> Session:
        with _refusing():
            folder = _folder(cwd)
            session = self._open.get(session_id)
            if session is None:
                record = await self._sessions.find(session_id)
                if record is None:
                    raise RequestError(NOT_FOUND, f"there is no session {session_id[:100]!r}")
                session = self._session(record)
            if session.cwd != folder:
                raise InvalidInputError(
                    f"the session is of the folder {str(session.cwd)!r}, and not of {cwd!r}"
                )
            await session.open(Path(cwd))
        return self._open.setdefault(session_id, session)

    def _known(self, session_id: str) -> Session:
        if session_id not in self._open:
            raise RequestError(
                NOT_FOUND, f"no session {session_id[:100]!r} is open here; load or resume it first"
            )
        return self._open[session_id]

    def _say_later(self, session: Session) -> None:
        """Behind the answer, before which the client does not know the session."""
        task = asyncio.create_task(session.begin())
        self._later.add(task)
        task.add_done_callback(self._later.discard)


class _refusing:  # noqa: N801  # reads as a verb
    """What the client gave is refused, in words, and nothing has changed."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UserError):
            raise RequestError(-32602, str(error)) from error


def _absolute(cwd: str) -> Path:
    path = Path(cwd)
    if not path.is_absolute() or "\0" in cwd:
        raise InvalidInputError(f"cwd {cwd[:300]!r} is no absolute path")
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise InvalidInputError(f"cwd {cwd[:300]!r}: {error}") from error


def _folder(cwd: str) -> Path:
    path = _absolute(cwd)
    try:
        is_folder = path.is_dir()
    except OSError:  # its name is too long, say
        is_folder = False
    if not is_folder:
        raise InvalidInputError(f"cwd {cwd[:300]!r} is no folder that exists")
    return path
