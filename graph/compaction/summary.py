"""The summary: asked of the model, and made a message."""

from collections.abc import Iterator

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM

from graph.briefing.handover import describe_handover
from graph.deps import AgentDeps
from graph.messages.from_model import is_complete
from graph.messages.instructions import keep_first, list_in_place
from graph.messages.shortening import cut_for_summary
from graph.models.bound_model import call_model
from graph.state import State, get_depth
from modes.errors import ProviderError, TooLongError
from prompts import render_summary_request

HEADER = (
    "[Summary of the conversation so far; of its messages only the last ones follow, which are "
    "summarized too.]"
)


async def ask_for_summary(
    deps: AgentDeps, slug: str, state: State, config: RunnableConfig, budget: int
) -> AIMessage:
    """Asked as the next message of the conversation, all of which is in the provider's cache.

    If the whole is longer than the model reads, it gets what fits into ``budget`` tokens.
    """
    messages = state.get("messages", [])
    told = state.get("instructions", [])
    first = keep_first(told)
    if not any(isinstance(message, AIMessage) for message in messages):
        raise ProviderError("there is nothing to summarize yet")
    bound = deps.bound_model(slug, state.get("limit"), get_depth(state))
    request = HumanMessage(render_summary_request())
    config = merge_configs(config, {"tags": [TAG_NOSTREAM]})
    try:
        known = [*first, *list_in_place(messages, told)]
        return await call_model(bound, [*messages, request], config, known)
    except TooLongError:
        shorter = cut_for_summary(messages, budget)
        if not shorter:
            raise
        left = [*first, *list_in_place(shorter, told)]
        return await call_model(bound, [*shorter, request], config, left)


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
