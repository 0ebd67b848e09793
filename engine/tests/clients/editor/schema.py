"""Messages against the SDK's models, which are made from the protocol's own schema."""

import json
from typing import Annotated, Any, Literal

from acp import schema as acp
from pydantic import Field, TypeAdapter, ValidationError

# What the protocol's stable version 1 has by now, and the SDK's models not yet.


class Notice(acp.BaseModel):
    session_update: Annotated[Literal["notice"], Field(alias="sessionUpdate")]
    severity: Literal["info", "warning", "error"]
    title: Annotated[str, Field(min_length=1)]
    description: str | None = None


class Compaction(acp.BaseModel):
    session_update: Annotated[Literal["compaction_update"], Field(alias="sessionUpdate")]
    compaction_id: Annotated[str, Field(alias="compactionId")]
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: list[acp.TextContentBlock] | None = None
    error: str | None = None


class Start(acp.ToolCallStart):
    name: str | None = None


class NewUpdate(acp.SessionNotification):
    update: Annotated[  # type: ignore[assignment]  # of kinds that the SDK does not know
        Notice | Compaction | Start, Field(discriminator="session_update")
    ]


class NewSession(acp.ClientSessionCapabilities):
    notices: dict[str, Any] | None = None
    compaction: dict[str, Any] | None = None


class NewCapabilities(acp.ClientCapabilities):
    session: NewSession | None = None


class NewInitialize(acp.InitializeRequest):
    client_capabilities: Annotated[NewCapabilities, Field(alias="clientCapabilities")]


MODELS: dict[str, tuple[Any, ...]] = {
    "initialize": (NewInitialize, acp.InitializeResponse),
    "authenticate": (acp.AuthenticateRequest, acp.AuthenticateResponse),
    "session/new": (acp.NewSessionRequest, acp.NewSessionResponse),
    "session/load": (acp.LoadSessionRequest, acp.LoadSessionResponse),
    "session/resume": (acp.ResumeSessionRequest, acp.ResumeSessionResponse),
    "session/list": (acp.ListSessionsRequest, acp.ListSessionsResponse),
    "session/close": (acp.CloseSessionRequest, acp.CloseSessionResponse),
    "session/delete": (acp.DeleteSessionRequest, acp.DeleteSessionResponse),
    "session/fork": (acp.ForkSessionRequest, acp.ForkSessionResponse),
    "session/set_mode": (acp.SetSessionModeRequest, acp.SetSessionModeResponse),
    "session/set_config_option": (
        acp.SetSessionConfigOptionSelectRequest | acp.SetSessionConfigOptionBooleanRequest,
        acp.SetSessionConfigOptionResponse,
    ),
    "session/prompt": (acp.PromptRequest, acp.PromptResponse),
    "session/cancel": (acp.CancelNotification,),
    "$/cancel_request": (acp.CancelRequestNotification,),
    "session/update": (acp.SessionNotification | NewUpdate,),
    "session/request_permission": (acp.RequestPermissionRequest, acp.RequestPermissionResponse),
    "elicitation/create": (acp.CreateElicitationRequest, acp.CreateElicitationResponse),
    "fs/read_text_file": (acp.ReadTextFileRequest, acp.ReadTextFileResponse),
    "fs/write_text_file": (acp.WriteTextFileRequest, acp.WriteTextFileResponse),
}
"""What a method is called with, and what is answered; a notification is not."""


def check(messages: list[dict[str, Any]]) -> None:
    """Every message, of both sides, in the order in which they went; raises for one that is off."""
    asked: dict[Any, str] = {}
    for message in messages:
        assert message["jsonrpc"] == "2.0", message
        if "method" in message:
            request, *answer = MODELS[message["method"]]
            assert bool(answer) == ("id" in message), message
            asked[message.get("id")] = message["method"]
            check_value(request, message["params"])
        elif "error" in message:
            check_value(acp.Error, message["error"])
        else:
            check_value(MODELS[asked[message["id"]]][1], message["result"])


def check_value(model: Any, value: Any) -> None:
    """The models leave out what they do not know or cannot read: what is left must be all."""
    try:
        read: Any = TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        raise AssertionError(f"no {model}: {error}\n{json.dumps(value)[:2000]}") from error
    # Neither side sends what is null, but for an error's data and a new file's old text.
    left = read.model_dump(
        mode="json",
        by_alias=True,
        exclude_unset=True,
        exclude_none=model is not acp.Error,
        warnings=False,
    )
    assert left == drop_old_text(value), f"no {model}"


def drop_old_text(value: Any) -> Any:
    """The value without what says that a file is new."""
    match value:
        case list():
            return [drop_old_text(item) for item in value]
        case {"type": "diff", "oldText": None, **rest}:
            return {"type": "diff", **rest}
        case dict():
            return {key: drop_old_text(item) for key, item in value.items()}
    return value
