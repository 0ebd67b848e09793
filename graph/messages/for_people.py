"""``show_result``: a call's result without what is meant for the model alone."""

from langchain_core.messages import ToolMessage

from graph.messages.untrusted import remove_marks

EDITED = (
    "[The user changed the arguments to {args!r} before it ran; do not repeat your own call.]\n"
)
"""What the model is told before the result: one line."""


def show_result(message: ToolMessage) -> str:
    """The text as a person reads it; what a tool has said stays as it is."""
    facts = message.artifact if isinstance(message.artifact, dict) else {}
    is_changed = "changed_to" in facts
    text = message.text.partition("\n")[2] if is_changed else message.text
    text = remove_marks(facts.get("shown", text))
    return f"Run with your arguments: {facts['changed_to']!r}\n{text}" if is_changed else text
