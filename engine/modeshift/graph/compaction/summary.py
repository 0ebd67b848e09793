"""The summary: asked of the model, and made a message."""

from collections.abc import AsyncIterator, Iterator, Sequence
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM

from modeshift.graph.briefing.handover import describe_handover
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.from_model import is_complete
from modeshift.graph.messages.instructions import keep_first, list_in_place
from modeshift.graph.messages.shortening import split_for_summary
from modeshift.graph.models.bound_model import call_model
from modeshift.graph.state import State, get_depth
from modeshift.modes.errors import ProviderError, TooLongError
from modeshift.prompts import render_summary_request

HEADER = (
    "[Summary of the conversation so far; of its messages only the last ones follow, which are "
    "summarized too.]"
)

NO_SUMMARY = (
    "[The conversation so far was too long, and could not be summarized. Of its earlier messages "
    "these are the user's:]"
)


async def ask_for_summary(
    deps: AgentDeps, slug: str, state: State, config: RunnableConfig, budget: int
) -> AsyncIterator[AIMessage]:
    """The answers, the last of which is about all of the conversation.

    Asked as the next message of the conversation, all of which is in the provider's cache. If the
    whole is longer than the model reads, it gets parts of ``budget`` tokens or less, each with the
    summary of those before.
    """
    part, left = [*state.get("messages", [])], list[AnyMessage]()
    told = state.get("instructions", [])
    if not any(isinstance(message, AIMessage) for message in part):
        raise ProviderError("there is nothing to summarize yet")
    bound = deps.bound_model(slug, state.get("limit"), get_depth(state))
    request = HumanMessage(render_summary_request())
    config = merge_configs(config, {"tags": [TAG_NOSTREAM]})
    before: list[AnyMessage] = []
    while part:
        sent = [*before, *part]
        known = [*keep_first(told), *list_in_place(sent, told)]
        try:
            answer = await call_model(bound, [*sent, request], config, known)
        except TooLongError:
            smaller, more = split_for_summary(part, budget)
            if smaller == part:
                raise
            part, left, budget = smaller, [*more, *left], budget // 2
            continue
        yield answer
        before = [build_summary(answer, "")]
        part, left = split_for_summary(left, budget)


def build_note(messages: Sequence[AnyMessage], kept: Sequence[AnyMessage], files: str) -> AIMessage:
    """What says, in the place of messages that the model did not summarize, what they were.

    That is the user's own, and what was in the place of still earlier ones.
    """
    ids = {message.id for message in kept}
    texts = [
        message.text
        for message in messages
        if message.id not in ids
        and (isinstance(message, HumanMessage) or message.text.startswith((HEADER, NO_SUMMARY)))
    ]
    return AIMessage("\n\n".join([NO_SUMMARY, *texts]) + f"\n{files}".rstrip(), id=str(uuid4()))


def build_summary(answer: AIMessage, files: str) -> AIMessage:
    """The message in the place of the history, with the ``files`` written until now."""
    if answer.tool_calls or not is_complete(answer):
        what = "called a tool" if answer.tool_calls else "gave no complete answer"
        raise ProviderError(f"asked for a summary, the model {what}")
    return AIMessage(f"{HEADER}\n\n{answer.text.strip()}\n{files}".rstrip(), id=answer.id)


def list_files(deps: AgentDeps, slug: str, state: State) -> Iterator[str]:
    """A line for each mode that wrote files in this conversation, such as a plan."""
    written: dict[str, dict[str, None]] = {}
    parents = state.get("parents")
    since = parents[-1]["changes"] if parents else 0
    records = state.get("mode_changes", [])[since:]
    changes = [(one["source"], one.get("written", [])) for one in records]
    for mode, files in [*changes, (slug, state.get("written", []))]:
        written.setdefault(mode, {}).update(dict.fromkeys(files))
    for mode, names in written.items():
        name = deps.catalog[mode].name if mode in deps.catalog else mode
        yield describe_handover(name, [*names])
