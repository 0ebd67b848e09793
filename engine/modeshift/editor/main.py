"""``Entrance`` for editors: the Agent Client Protocol on standard input and output.

An editor starts it; `make acp` prints what to put into the editor's settings. Settings come
from .env in the clone; the editor's folder is the workspace. Logs go to standard error.
"""

import argparse
import asyncio
import importlib
import logging
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Timer
from typing import Any, cast

from acp import PROTOCOL_VERSION, Agent, RequestError, run_agent, schema
from acp.interfaces import Client
from acp.schema import ClientCapabilities

from modeshift.editor.transport import INVALID_PARAMS, Editor, connect_pipes, take_standard_streams
from modeshift.modes.errors import MissingKeyError, ProviderError, RefusedKeyError, UserError
from modeshift.modes.plain_data import JsonObject
from modeshift.project import use_root
from modeshift.starting import collect_rarely

AUTH_REQUIRED, INTERNAL_ERROR = -32000, -32603
AUTH_METHOD = schema.AuthMethodAgent(
    id="key",
    name="The provider's key",
    description="Set the key that MODEL needs in .env in Modeshift's folder, or in the editor's "
    "settings for this agent.",
)
OpenEditorAgent = Callable[[Client, ClientCapabilities], Awaitable[object]]


class Entrance:
    """Serves one connection. The SDK finds the methods by their names."""

    def __init__(self, open_agent: OpenEditorAgent) -> None:
        """``open_agent`` gives the ``EditorAgent``; once it has raised, it is called again."""
        self._open_agent = open_agent
        self._lock = asyncio.Lock()
        self._agent: Any = None
        self._offered = ClientCapabilities()
        self._client: Client
        self._version = version("modeshift")

    def on_connect(self, client: Client) -> None:
        """Take the client, which gets updates and questions."""
        self._client = client

    async def initialize(
        self, client_capabilities: ClientCapabilities | None = None, **_: object
    ) -> schema.InitializeResponse:
        """Offer version 1 of the protocol, whatever the client asks for."""
        self._offered = client_capabilities or ClientCapabilities()
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(
                name="modeshift", title="Modeshift", version=self._version
            ),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True),
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                    delete=schema.SessionDeleteCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                ),
            ),
            auth_methods=[AUTH_METHOD],
        )

    async def ext_method(self, method: str, params: JsonObject) -> JsonObject:
        """Delete a session: the SDK knows of its own methods and of extensions alone."""
        if method != "session/delete":
            raise RequestError.method_not_found(f"_{method}")
        request = schema.DeleteSessionRequest.model_validate(params)
        await self._pass_on("delete_session", session_id=request.session_id)
        return {}

    async def cancel(self, **fields: object) -> None:
        """Cancel the turn that is going on in a session, and those behind it."""
        if self._agent is not None:
            await self._agent.cancel(**fields)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        """A method of the agent's, which says in words what is wrong with the request."""
        if name.startswith(("_", "ext_")):
            raise AttributeError(name)
        return partial(self._pass_on, name)

    async def _pass_on(self, name: str, **fields: object) -> object:
        try:
            async with self._lock:
                self._agent = self._agent or await self._open_agent(self._client, self._offered)
            return await getattr(self._agent, name)(**fields)
        except (MissingKeyError, RefusedKeyError) as error:
            methods = [AUTH_METHOD.model_dump(by_alias=True, exclude_none=True)]
            data = {"details": str(error), "authMethods": methods}
            raise RequestError(AUTH_REQUIRED, str(error), data) from error
        except ProviderError as error:
            raise RequestError(INTERNAL_ERROR, str(error)) from error
        except UserError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error


EXIT_SECONDS = 4
THREADS = 512
"""A read through the editor blocks a thread; no session may use up those of another."""


def main() -> None:
    """Serve until the editor closes the connection; exit with a message if that is impossible."""
    parser = argparse.ArgumentParser("modeshift-acp", description="The agent, for an editor.")
    parser.add_argument("--project", metavar="FOLDER", type=Path, help="the clone")
    if (project := parser.parse_args().project) is not None:
        try:
            use_root(project)
        except UserError as error:
            sys.exit(f"modeshift-acp: {error}")
    if not all(map(_is_pipe, (0, 1))):
        sys.exit(
            "modeshift-acp: it talks JSON-RPC to an editor, over pipes; `make acp` in the clone "
            "prints what to put into the editor's settings"
        )
    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    # No network request that nobody asked for; a value that the user has set wins.
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve_editor())


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _serve_editor() -> None:
    transport = await connect_pipes(*take_standard_streams())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, transport.hang_up)
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    async with AsyncExitStack() as stack:

        async def open_agent(client: Client, offered: ClientCapabilities) -> object:
            agent = await asyncio.to_thread(importlib.import_module, "modeshift.editor.agent")
            collect_rarely()
            return await stack.enter_async_context(
                agent.connect(Editor(client, offered, transport.withdraw, transport.shows))
            )

        try:
            # The SDK still calls closing and resuming unstable; the protocol does not.
            entrance = cast("Agent", Entrance(open_agent))
            await run_agent(entrance, transport, use_unstable_protocol=True)
        finally:
            # Whatever delays the end, such as a lock on the file: the editor is gone.
            deadline = Timer(EXIT_SECONDS, os._exit, (1,))
            deadline.daemon = True
            deadline.start()


if __name__ == "__main__":
    main()
