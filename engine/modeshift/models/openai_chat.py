"""OpenAI's Chat Completions as other servers speak them: what LangChain's client leaves out.

Reasoning goes back to the server and model that it came from, under the names it came with; they
refuse a call without it ("missing thought_signature"). An answer without ``finish_reason`` is whole
if its JSON is, or if its stream ended with ``[DONE]``. A streamed refusal keeps its words.
"""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai.chat_models.base import BaseChatOpenAI
from openai import APIError, BaseModel
from typing_extensions import override

from modeshift.messages.instructions import ORIGIN
from modeshift.modes.plain_data import JsonObject
from modeshift.workarounds.openai import WHOLE, tell_ends_apart

_FIELDS = {"reasoning_content": str, "reasoning": str, "reasoning_details": list}
_EXTRA = "extra_content"
"""The field beside a call with Gemini's signature, in Google's own form of the format."""
_JOINED = {"reasoning.text": "text", "reasoning.summary": "summary"}


if TYPE_CHECKING:
    _Base = BaseChatOpenAI
else:
    _Base = object  # or its fields would stand in for those of the integration


def build_extended(integration: type[BaseChatOpenAI], **arguments: object) -> BaseChatOpenAI:
    """A model of LangChain's class ``integration``, with what that class leaves out."""
    model = _extend(integration)(**arguments)
    tell_ends_apart(model.root_async_client)
    return model


@cache
def _extend(integration: type[BaseChatOpenAI]) -> type[BaseChatOpenAI]:
    return type(integration.__name__, (_Extended, integration), {"__module__": __name__})


class _Extended(_Base):
    @property
    def origin(self) -> str:
        """The server and the model."""
        return f"{self.root_async_client.base_url} {self.model_name}"

    @override
    def _create_chat_result(
        self, response: JsonObject | BaseModel, generation_info: JsonObject | None = None
    ) -> ChatResult:
        body = response.model_dump(warnings=False) if isinstance(response, BaseModel) else response
        if not isinstance(body, dict):
            raise ValueError(f"no JSON object: {str(body)[:100]!r}")  # a web page
        error = body.get("error")
        for choice in body.get("choices") or ():
            if not choice.get("message"):  # Azure has filtered it
                error = {"message": "no message in it", "code": choice.get("finish_reason")}
            choice["finish_reason"] = choice.get("finish_reason") or WHOLE
        if error:
            message = error.get("message") if isinstance(error, dict) else error
            request: Any = None  # its original is lost by now, and nobody asks for it
            raise APIError(str(message or error), request, body=error)
        result = super()._create_chat_result(body, generation_info)
        for choice, generation in zip(body["choices"], result.generations, strict=True):
            self._keep(choice["message"], generation.message)
        return result

    @override
    def _convert_chunk_to_generation_chunk(
        self, chunk: JsonObject, default_chunk_class: type, base_generation_info: Any
    ) -> ChatGenerationChunk | None:
        choices = chunk.get("choices") or []
        for choice in choices:
            choice["delta"] = choice.get("delta") or {}
            for index, call in enumerate(choice["delta"].get("tool_calls") or ()):
                call.setdefault("index", index)
        made = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        if made is not None and choices:
            self._keep(choices[0]["delta"], made.message, is_part=True)
        return made

    def _keep(self, source: JsonObject, message: BaseMessage, *, is_part: bool = False) -> None:
        """Note on ``message`` what the server said beside the words and the calls."""
        kept: JsonObject = {
            name: value
            for name, kind in _FIELDS.items()
            if isinstance(value := source.get(name), kind) and value
        }
        if parts := [item for item in kept.pop("reasoning_details", ()) if isinstance(item, dict)]:
            # LangChain would join those with the same index, whatever they are.
            kept["reasoning_details"] = [{"part": item} for item in parts] if is_part else parts
        calls = source.get("tool_calls") or ()
        if extra := {
            id: call[_EXTRA] for call in calls if call.get(_EXTRA) and (id := call.get("id"))
        }:
            kept[_EXTRA] = extra
        if kept or calls:  # the server that made the ids
            message.additional_kwargs |= {**kept, ORIGIN: {self.origin: True}}
        if refusal := source.get("refusal"):
            message.additional_kwargs["refusal"] = refusal

    @override
    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: object
    ) -> JsonObject:
        payload: JsonObject = super()._get_request_payload(input_, stop=stop, **kwargs)
        messages = self._convert_input(input_).to_messages()
        # A payload for the Responses API has no messages.
        for message, sent in zip(messages, payload.get("messages", ()), strict=False):
            if isinstance(message, AIMessage):
                _restore(message.additional_kwargs, sent, self.origin)
        return payload


def _restore(kept: JsonObject, sent: JsonObject, origin: str) -> None:
    """Add to an assistant's message that is sent what its server said beside it."""
    content = sent.get("content")
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        sent["content"] = "".join(part["text"] for part in content)  # many take only text here
    if origin not in kept.get(ORIGIN, ()):
        return
    sent |= {name: kept[name] for name in _FIELDS if name in kept}
    if "reasoning_details" in sent:
        sent["reasoning_details"] = list(_join(sent["reasoning_details"]))
    for call in sent.get("tool_calls", ()):
        if extra := kept.get(_EXTRA, {}).get(call["id"]):
            call[_EXTRA] = extra


def _join(details: list[JsonObject]) -> Iterator[JsonObject]:
    last: JsonObject = {}
    for detail in details:
        part = detail.get("part", detail)
        text = _JOINED.get(part.get("type")) if "part" in detail else None
        if text and last and (part["type"], part.get("index")) == (last["type"], last.get("index")):
            news = {name: value for name, value in part.items() if value is not None}
            last = {**last, **news, text: (last.get(text) or "") + (part.get(text) or "")}
            continue
        if last:
            yield last
        last = part
    if last:
        yield last
