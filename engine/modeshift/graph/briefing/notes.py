"""``build_note``: what a node of the clone's own tells the model, beside the conversation."""

from collections.abc import Sequence
from itertools import takewhile

from langchain_core.messages import AnyMessage, ToolMessage

from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.instructions import Instruction
from modeshift.graph.state import State, get_depth


def build_note(deps: AgentDeps, state: State, slug: str, text: str) -> Instruction:
    """It stands behind the last message, and changes nothing else that the model knows."""
    told = state.get("instructions", [])
    names = deps.bound_model(slug, state.get("limit"), get_depth(state)).names
    last = (
        told[-1]
        if told
        else Instruction(after="", text="", mode=slug, tools=[*names], words="", environment="")
    )
    return {**last, "after": str(state["messages"][-1].id), "text": text}


def has_edited(deps: AgentDeps, messages: Sequence[AnyMessage]) -> bool:
    """Whether a call of the last answer has changed a file."""
    editing = {spec.name for spec in deps.toolbox.specs if spec.effect.changes_files}
    results = takewhile(lambda message: isinstance(message, ToolMessage), reversed(messages))
    return any(
        isinstance(result, ToolMessage) and result.name in editing and result.status == "success"
        for result in results
    )
