"""What happens in a turn, node by node; where each leads is in ``chart.py``.

A node gets a ``Step`` and returns what its move gave. LangGraph runs a node again from its start
when a person has answered, so ``review`` does nothing before it asks.
"""

from langgraph.types import Command
from modeshift import Event, Step, Update


async def intake(step: Step) -> Update:
    """A run begins, or the host has set something."""
    if step.is_waiting:
        return step.keep_waiting()
    return step.begin_turn()


async def think(step: Step, mode: str) -> Update:
    """The model answers, in the mode's words and with its tools."""
    answer = await step.ask_model(mode)
    if answer is None:  # the history is to be summarized first, or a sub-task has failed
        return step.update
    if not answer.tool_calls:
        return step.go(Event.ANSWER)
    calls = await step.judge(answer)
    if calls.need_a_person:
        return step.go(Event.REVIEW, asked=await calls.question())
    return step.go(Event.ACT, due_calls=calls.batches())


async def review(step: Step) -> Update:
    """A person decides, once for all calls of a message."""
    question = await step.open_question()
    if question is None:  # the mode, its rules or the files have changed
        return step.withdraw_question()
    question.ask()
    return await step.settle(question)


async def act(step: Step) -> Command[str]:
    """One call runs, judged again just before."""
    call = await step.judge_again()
    if call is None:  # an interrupted run goes on with other code or modes
        return step.start_again()
    if call.refusal is not None:
        return await step.move_on(call.not_run(call.refusal))
    async with call.started() as problem:
        if problem is not None:
            return await step.move_on(call.not_run(problem))
        result = await call.run()
    return await step.move_on(result, is_done=call.ends_turn)


async def switch_mode(step: Step) -> Update:
    """A switch that a person approved takes effect, or the sub-task begins."""
    switch = step.approved_switch()
    if switch is None:  # the mode or the limit has changed since
        return step.drop_switch()
    if switch.get("task"):
        return step.begin_subtask(switch)
    return step.enter(switch)


async def end_subtask(step: Step) -> Update:
    """The conversation that began the sub-task goes on with its result."""
    return await step.end_subtask()


async def compact_history(step: Step) -> Update:
    """A summary takes the place of a history that outgrows the model's window."""
    return await step.compact()
