"""How a model is told that it has other tools now: one table, by what the model takes.

What a request begins with, the system prompt and the tools, should stay as it is for a thread's
whole life: providers keep it in a cache, and the newest models take their thinking back only
behind the very same beginning. Whatever a model is told, a call of a tool that its mode lacks is
refused.
"""

import logging
import os
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import httpx
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from modeshift.models.provider_errors import is_refused
from modeshift.models.providers import PROVIDERS, is_local
from modeshift.modes.plain_data import JsonObject

SECONDS = 3.0
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.M)


@dataclass(frozen=True)
class ModelServer:
    """What a server says of its model; None for what it does not say."""

    window: int | None = None
    """How many tokens a request and its answer may have together."""
    has_tools: bool | None = None
    """Whether the model's chat template shows the tools: llama.cpp leaves them out otherwise."""


def ask_server(name: str) -> ModelServer | None:
    """What the server of ``provider:name`` says of the model; blocks.

    llama.cpp says it at ``/props``, vLLM at ``/v1/models``, Ollama at ``/api/show``. None if it
    cannot be asked now: it is not there, or still loads the model. A provider's own servers are
    not asked.
    """
    provider, _, model = name.partition(":")
    if not is_local(provider):
        return ModelServer()
    known = PROVIDERS[provider]
    address = (known.address() or known.default_address).rstrip("/")
    key = os.environ.get(known.key or "")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(timeout=SECONDS, headers=headers) as client:
            if provider == "ollama":
                address = address if "://" in address else f"http://{address}"
                return _ask_ollama(client, address, model)
            return _ask_chat(client, address, model)
    except httpx.TransportError:
        return None


def _ask_chat(client: httpx.Client, address: str, model: str) -> ModelServer:
    props = _get(client, "GET", f"{address.removesuffix('/v1')}/props", params={"model": model})
    match props:
        case {"default_generation_settings": {"n_ctx": int(window)}}:
            caps = props.get("chat_template_caps") or {}
            return ModelServer(window, caps.get("supports_tools"))
    for info in _get(client, "GET", f"{address}/models").get("data") or ():
        match info:
            case {"id": str(id), "max_model_len": int(window)} if id == model:
                return ModelServer(window)
    return ModelServer()


def _ask_ollama(client: httpx.Client, address: str, model: str) -> ModelServer:
    """The window is ``num_ctx``, not what the model could read: Ollama silently drops the rest."""
    shown = _get(client, "POST", f"{address}/api/show", json={"model": model})
    size = _NUM_CTX.search(str(shown.get("parameters")))
    has_tools = "tools" in shown["capabilities"] if "capabilities" in shown else None
    return ModelServer(int(size[1]) if size else None, has_tools)


def _get(client: httpx.Client, method: str, url: str, **more: Any) -> JsonObject:
    """The answer's JSON object; empty for another answer. Raises ``httpx.TransportError``."""
    response = client.request(method, url, **more)
    if response.is_server_error:
        raise httpx.TransportError(f"{url} answers {response.status_code}")
    try:
        body = response.json() if response.is_success else None
    except ValueError:  # such as a web page
        body = None
    return body if isinstance(body, dict) else {}


ToolsWay = Literal["tool_changes", "allowed_tools", "append", "rewrite"]
"""How a model is told its tools. All tools are declared, and a system message names those added
and removed; or each request names those of the mode; or only the words in the last message do; or
each request declares those of the mode alone, with the words in the last message."""
NEED_NOTHING: tuple[ToolsWay, ...] = ("append", "rewrite")
"""The ways that every server takes, with the words in the last message."""
PART_FOR_TOOLS = 6
"""All tools may take a sixth of the window, or ``append`` leaves too little of it."""
TOOL_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"
_DATE = re.compile(r"-20\d{6}$")


def choose_tools_way(
    model: BaseChatModel, setting: str = "auto", *, is_local: bool = False
) -> ToolsWay:
    """The way for ``model``; ``setting`` is ``MODE_CHANGES``.

    It is for models of which nothing is known: without it, they get ``rewrite``, which all take;
    if the server ``is_local``, ``append``, where its window has room for all tools.
    What the model's client cannot put into a request is not chosen.
    """
    if setting == "append" or (setting == "auto" and is_local):
        return "append"
    classes = {kind.__name__ for kind in type(model).__mro__}
    if "ChatAnthropic" in classes:
        best: ToolsWay = "tool_changes"
        is_known = bool(_find_profile(model).get("mid_conversation_tools"))
    elif "BaseChatOpenAI" in classes:
        best = "allowed_tools"
        is_known = bool(getattr(model, "use_responses_api", False))
    else:
        return "rewrite"
    if setting != best and not (setting == "auto" and is_known):
        return "rewrite"
    if best == "tool_changes":
        # Otherwise the client raises ValueError for a system message that is not the first.
        profile: Any = {**_find_profile(model), "mid_conversation_system_messages": True}
        model.profile = profile
    return best


def _find_profile(model: BaseChatModel) -> JsonObject:
    """What LangChain knows of the model, whose name may end with a date."""
    name = str(getattr(model, "model", ""))
    if not model.profile and (plain := _DATE.sub("", name)) != name:
        known = init_chat_model(plain, model_provider="anthropic", api_key="none").profile
        return dict(known or {})
    return dict(model.profile or {})


log = logging.getLogger("modeshift")

BETA = "thinking-binding-controls-2026-08-01"
CHECKING = frozenset(
    {
        *("claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2"),
        *("claude-haiku-5-5", "claude-opus-5-5", "claude-sonnet-5-5"),
    }
)
"""The models that check what stands before their thinking; a name may end with a date."""
UPDATING = CHECKING - {"claude-haiku-5-5"}
"""The models that keep what they say between calls to themselves, unless asked for it."""
_GPT_CHECKING = re.compile(r"gpt-(6\.[2-9]|[7-9])")
_USERS_BETAS = re.compile(r"^\s*anthropic-beta\s*:\s*(\S.*?)\s*$", re.I | re.M)
_OTHER_CONVERSATION = "bound to a different conversation"
_UNFIT = re.compile(
    rf"{_OTHER_CONVERSATION}|invalid `signature`|encrypted content .* could not be verified", re.I
)
_ABOUT_THINKING = re.compile(
    rf"block_binding|display|{BETA}|anthropic-beta|adaptive|thinking[\w.]*: extra inputs", re.I
)
CacheTTL = Literal["5m", "1h"]
Thinking = Literal["all", "of this prefix", "none"]
_ABOUT_WAY = {
    "tool_changes": re.compile(
        rf"tool_reference|tool_addition|tool_removal|defer_loading|{TOOL_CHANGES_BETA}"
        r"|role\W+system|system\W+role|messages[\w.]*role|unknown anthropic-beta",
        re.I,
    ),
    "allowed_tools": re.compile(r"allowed_tools|tool_choice|developer|system message", re.I),
}
"""How a service refuses one of the ways in ``mode_changes``."""
_ABOUT_CALLS = re.compile(r"single tool.?calls? at once", re.I)
_TOLD = (
    ("way", "how a change of mode is told, so each change of mode rewrites the request"),
    ("drops", "block_binding"),
    ("updates", "thinking.display"),
    ("thinking", "thinking of another prompt"),
    ("caches", "cache_control"),
    ("splits_calls", "several calls in an answer"),
)
"""What the log says is not sent any more."""


@dataclass(frozen=True)
class OptionalFields:
    """What a request holds beside messages and tools."""

    way: ToolsWay = "rewrite"
    caches: bool = False
    ttl: CacheTTL = "5m"
    drops: bool = False
    """Whether the service is asked to drop thinking blocks that do not fit."""
    updates: bool = False
    """Whether it is asked for what the model says between calls, which comes as thinking."""
    thinking: Thinking = "all"
    """The blocks that are sent back."""
    splits_calls: bool = False
    """Whether the calls of an answer are as many answers, for a template that takes one in each."""

    @classmethod
    def of(cls, name: str, ttl: CacheTTL = "5m", way: ToolsWay = "rewrite") -> "OptionalFields":
        """The fields for the model ``provider:name``, as far as is known before it is asked."""
        provider, _, model = name.partition(":")
        if provider == "openai" and _GPT_CHECKING.match(model):
            return cls(way, thinking="of this prefix")
        if provider != "anthropic":
            return cls(way)
        fields = cls(way, caches=True, ttl=ttl)
        if (model := _DATE.sub("", model)) not in CHECKING:
            return fields
        # With a block that does not fit, the service would drop all later ones too.
        return replace(fields, drops=True, updates=model in UPDATING, thinking="of this prefix")

    @cached_property
    def mark(self) -> dict[str, str] | None:
        """What marks the end of what is to be kept in the cache; None if nothing is."""
        ttl = {} if self.ttl == "5m" else {"ttl": self.ttl}  # 5m is the service's own
        return {"type": "ephemeral", **ttl} if self.caches else None

    @cached_property
    def arguments(self) -> JsonObject:
        """The arguments for the model's client."""
        arguments: JsonObject = {}
        if self.mark is not None:
            arguments["cache_control"] = self.mark
        if self.drops:
            binding = {"prefix_mismatch_behavior": "drop_block"}
            display = {"display": "updates"} if self.updates else {}
            arguments["thinking"] = {"type": "adaptive", "block_binding": binding, **display}
        betas = [BETA] if self.drops else []
        if self.way == "tool_changes":
            betas.append(TOOL_CHANGES_BETA)
        if betas:
            # The client would put this in the place of the user's own.
            users = _USERS_BETAS.findall(os.environ.get("ANTHROPIC_CUSTOM_HEADERS", ""))
            arguments["betas"] = [*users, *betas]
        return arguments

    @property
    def least(self) -> "OptionalFields":
        """The fields without any that a service might not know."""
        way = self.way if self.way in NEED_NOTHING else "rewrite"
        return replace(self, way=way, caches=False, drops=False)

    def without(self, error: Exception) -> "OptionalFields | None":
        """The fields without what ``error`` refuses; None if it is about something else."""
        if not is_refused(error):
            return None
        text = str(error)
        # First, because its text also names the field and the header.
        if self.thinking != "none" and _UNFIT.search(text):
            is_checked = self.thinking == "all" and _OTHER_CONVERSATION in text
            less: Thinking = "of this prefix" if is_checked else "none"
            return replace(self, drops=False, thinking=less)
        if (about := _ABOUT_WAY.get(self.way)) and about.search(text):
            return replace(self, way="rewrite")
        if self.drops and _ABOUT_THINKING.search(text):
            is_display = self.updates and "display" in text
            return replace(self, updates=self.updates and not is_display, drops=is_display)
        if self.caches and "cache_control" in text:
            return replace(self, caches=False)
        splits = not self.splits_calls and _ABOUT_CALLS.search(text)
        return replace(self, splits_calls=True) if splits else None


class ModelService:
    """What the service behind one model takes, as far as is known by now."""

    def __init__(
        self, name: str, ttl: CacheTTL = "5m", way: ToolsWay = "rewrite", *, is_set: bool = False
    ) -> None:
        """``name`` is the model's, as the user wrote it; ``is_set``: the user chose the way."""
        self.is_set = is_set
        self.fields = OptionalFields.of(name, ttl, way)
        """The fields of the next request; a thread may keep another of the ways."""
        self.server: ModelServer | None = None
        """What its server says; None until it has been asked."""
        self.max_tokens: int | None = None
        """The limit of an answer if nobody else sets one: a quarter of what the server reads."""
        self.unshown = frozenset[str]()
        """The ids of messages whose images are not sent: the service refused them."""
        self._name = name

    def choose_way(self, all_tools: int, window: int | None) -> tuple[ToolsWay, str]:
        """The way of a new thread, and why; ``all_tools`` is how many tokens they take."""
        way, why = self.fields.way, "as MODE_CHANGES says, or as is known of the model"
        if way != "append" or self.is_set:
            return way, why
        if window is None:
            return "rewrite", "its server does not say its window, and CONTEXT_WINDOW is not set"
        has_room = all_tools * PART_FOR_TOOLS <= window
        room = f"all tools take about {all_tools:,} tokens of its window of {window:,}"
        most = f"at most a {PART_FOR_TOOLS}th"
        return ("append", room) if has_room else ("rewrite", f"{room}; {most} is room for append")

    def learn(self, initial: OptionalFields, sent: OptionalFields, unshown: frozenset[str]) -> None:
        """Send no more from now on than was ``sent`` in a request that was answered.

        ``initial`` is what it was sent with at first. That no thinking was sent is for its history
        alone, which was edited. ``unshown``: the ids of messages whose images were left out.
        """
        new = []
        if sent.thinking != "none" and sent != initial:
            self.fields = replace(sent, way=self.fields.way) if sent.way == initial.way else sent
            new = [text for name, text in _TOLD if getattr(initial, name) != getattr(sent, name)]
        if not unshown <= self.unshown:
            new.append("images")
            self.unshown |= unshown
        for text in new:
            log.warning("the provider of %r refuses %s: not sent from now on", self._name, text)
