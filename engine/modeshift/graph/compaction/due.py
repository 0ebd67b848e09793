"""Whether the history is to be summarized now."""

from itertools import takewhile

from langchain_core.messages import AIMessage

from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.shortening import estimate_tokens
from modeshift.graph.state import State, get_depth
from modeshift.modes.errors import ConfigurationError

DUE_AT = 0.85
"""Of the window: how full it may get."""


def is_due(deps: AgentDeps, slug: str, state: State) -> bool:
    """Whether the history is to be summarized before the model is asked.

    Raises ``ConfigurationError`` if the window cannot even hold the prompt.
    """
    window = deps.bound_model(slug).window
    if window is not None and (size := deps.prompt_size(slug, get_depth(state))) > window:
        name = deps.catalog[slug].name
        raise ConfigurationError(
            f"the model {deps.bound_model(slug).name!r} reads {window:,} tokens at most, and the "
            f"prompt and the tools of {name} mode alone take about {size:,}; set CONTEXT_WINDOW "
            "to what it really reads, or MODEL to a model that reads more"
        )
    if state.get("compact"):
        return True
    if window is None or not may_compact(state):
        return False
    return _estimate_request(deps, slug, state) >= DUE_AT * window


def may_compact(state: State) -> bool:
    """Whether there is something to summarize, and enough of it is new."""
    at_least = state.get("compact_from", 0)
    if at_least is None or len(state["messages"]) < at_least:
        return False
    return any(isinstance(message, AIMessage) for message in state["messages"])


def _estimate_request(deps: AgentDeps, slug: str, state: State) -> int:
    """The tokens of the next request: what the provider counted at the last, and what is new."""
    messages, last = state["messages"], state.get("usage", {}).get("last")
    if last is None or last["used"] is None:
        return deps.prompt_size(slug, get_depth(state)) + estimate_tokens(messages)
    new = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    return last["used"] + estimate_tokens([*new])
