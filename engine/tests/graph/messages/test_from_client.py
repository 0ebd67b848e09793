"""What a client may say: the rest is tried in tests/graph/test_input.py, through an agent."""

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from modeshift.messages.normal_form import accept_messages


def test_a_client_supplies_no_results_and_no_ids_of_calls() -> None:
    """A result would say that a call ran; an id may be that of a call that waits."""
    call = {"name": "read_file", "args": {}, "id": "waiting"}
    messages = [
        AIMessage([{"type": "thinking", "thinking": "hm"}, "text"], tool_calls=[call]),
        ToolMessage("It ran.", tool_call_id="waiting"),
        HumanMessage("go on", name="somebody"),
    ]
    answer, user = accept_messages(messages)
    assert isinstance(answer, AIMessage)
    assert (answer.content, [call["args"] for call in answer.tool_calls]) == ("text", [{}])
    assert answer.tool_calls[0]["id"] != "waiting"
    assert (type(user), user.content, user.name) == (HumanMessage, "go on", None)
