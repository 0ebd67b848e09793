"""One model call, in the mode's words and with its tools."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from modeshift.graph.briefing.news import list_news
from modeshift.graph.compaction.due import is_due, may_compact
from modeshift.graph.deps import AgentDeps
from modeshift.graph.messages.instructions import Instruction, keep_first, list_in_place
from modeshift.graph.messages.normal_form import normalize
from modeshift.graph.models.bound_model import call_model
from modeshift.graph.models.usage import count_answer
from modeshift.graph.routing import get_thread
from modeshift.graph.state import State, Update, get_depth
from modeshift.graph.subtasks.begin import list_other_calls
from modeshift.modes.errors import TooLongError


async def ask_model(
    deps: AgentDeps,
    slug: str,
    state: State,
    config: RunnableConfig,
    notes: Sequence[Instruction],
) -> tuple[AIMessage | None, Update]:
    """The model's answer, and the update with it; None if the history is to be summarized first.

    ``notes`` are what the node itself tells the model.
    """
    limit = state.get("limit")
    # Commands that run in the background with the rights of another mode end here.
    here = deps.environment_digest(slug, limit)
    await deps.started_calls.background.end(get_thread(config), unless=here)
    bound = deps.bound_model(slug, limit, get_depth(state))
    if is_due(deps, slug, state):
        return None, {}
    first, messages = state.get("instructions", []), state["messages"]
    told = [*list_in_place(messages, first), *notes]
    news = await list_news(deps, slug, state, told)
    try:
        message = await call_model(bound, messages, config, [*keep_first(first), *told, *news])
    except TooLongError:
        # Once more if there was no summary: it is shortened without one then.
        if state.get("compact_from", 0) is not None and not may_compact(state):
            raise
        return None, {}
    answer = normalize(message, list_other_calls(state))
    update = Update(messages=[answer], usage=count_answer(message, bound.name, bound.window))
    if notes or news:
        update["instructions"] = [*notes, *news]
    return answer, update
