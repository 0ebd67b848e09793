"""``Entrance``: answers an editor at once; the first request after that imports the agent.

Imports no ``graph``: it, LangChain and LangGraph take most of the start.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.interfaces import Client

from modeshift.editor.transport import INVALID_PARAMS
from modeshift.modes.errors import (
    MissingKeyError,
    ProviderError,
    RefusedKeyError,
    UserError,
)

AUTH_REQUIRED, INTERNAL_ERROR = -32000, -32603
AUTH_METHOD = schema.AuthMethodAgent(
    id="key",
    name="The provider's key",
    description="Set the key that MODEL needs in .env in Modeshift's folder, or in the editor's "
    "settings for this agent.",
)
Opening = Callable[[Client, schema.ClientCapabilities], Awaitable[Any]]


class Entrance:
    """One per connection. The SDK finds the methods by their names."""

    def __init__(self, open_agent: Opening) -> None:
        """``open_agent`` gives the ``EditorAgent``; once it has raised, it is called again."""
        self._open_agent = open_agent
        self._lock = asyncio.Lock()
        self._agent: Any = None
        self._offered = schema.ClientCapabilities()
        self._client: Client
        # A clone may have another name, and so no distribution of ours.
        self._version = version("modeshift")

    def on_connect(self, client: Client) -> None:
        """Take the client, which gets updates and questions."""
        self._client = client

    async def initialize(
        self, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        """Offer version 1 of the protocol, whatever the client asks for."""
        self._offered = client_capabilities or schema.ClientCapabilities()
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

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Delete a session: the SDK knows of its own methods and of extensions alone."""
        if method != "session/delete":
            raise RequestError.method_not_found(f"_{method}")
        given = schema.DeleteSessionRequest.model_validate(params)
        await self._pass_on("delete_session", session_id=given.session_id)
        return {}

    async def cancel(self, **given: Any) -> None:
        """Cancel the turn that is going on in a session, and those behind it."""
        if self._agent is not None:
            await self._agent.cancel(**given)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """A method of the agent's, which says in words what is wrong with the request."""
        if name.startswith(("_", "ext_")):
            raise AttributeError(name)
        return partial(self._pass_on, name)

    async def _pass_on(self, name: str, **given: Any) -> Any:
        with _refuse_user_errors():
            async with self._lock:
                self._agent = self._agent or await self._open_agent(self._client, self._offered)
            return await getattr(self._agent, name)(**given)


@contextmanager
def _refuse_user_errors() -> Iterator[None]:
    try:
        yield
    except (MissingKeyError, RefusedKeyError) as error:
        methods = [AUTH_METHOD.model_dump(by_alias=True, exclude_none=True)]
        data = {"details": str(error), "authMethods": methods}
        raise RequestError(AUTH_REQUIRED, str(error), data) from error
    except ProviderError as error:
        raise RequestError(INTERNAL_ERROR, str(error)) from error
    except UserError as error:
        raise RequestError(INVALID_PARAMS, str(error)) from error
