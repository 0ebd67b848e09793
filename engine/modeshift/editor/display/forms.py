"""Questions as forms (``elicitation/create``), for editors that offer them."""

from acp import schema

from modeshift.editor.display.permission_requests import Option, Question

CHOICE, WORDS = "suggestion", "words"


def build_form(question: Question, session_id: str) -> schema.ElicitationFormSessionMode:
    """Its suggestions to choose from, and a line for other words; nothing is chosen at first."""
    fields: dict[str, schema.ElicitationStringPropertySchema] = {}
    suggestions = [one for one in question.options if one.decision is not None]
    if suggestions:
        fields[CHOICE] = schema.ElicitationStringPropertySchema(
            type="string",
            title="A suggestion",
            one_of=[schema.EnumOption(const=one.id, title=one.name) for one in suggestions],
        )
    title = "Or other words" if suggestions else "Your answer"
    fields[WORDS] = schema.ElicitationStringPropertySchema(type="string", title=title)
    return schema.ElicitationFormSessionMode(
        session_id=session_id,
        tool_call_id=question.view.id,
        requested_schema=schema.ElicitationSchema(properties=dict(fields)),
    )


def read_form(question: Question, answer: schema.CreateElicitationResponse) -> Option | None:
    """What was answered, words first; None if the form was closed, or for what it did not offer.

    A form that is declined, or left empty, is an answer in the chat.
    """
    if isinstance(answer, schema.DeclineElicitationResponse):
        return question.options[-1]
    if not isinstance(answer, schema.AcceptElicitationResponse):
        return None
    given = answer.content or {}
    words, choice = given.get(WORDS), given.get(CHOICE)
    if isinstance(words, str) and words.strip():
        decision = {"type": "respond", "message": words.strip()}
        return Option(WORDS, words, "allow_once", decision)
    return question.options[-1] if choice in (None, "") else question.get(choice)
