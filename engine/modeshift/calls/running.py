"""``run_tool``: runs a call that was judged; and what facts can follow from it."""

from collections.abc import Sequence

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig

from modeshift.calls.judging import Judged
from modeshift.messages import repair
from modeshift.modes.facts import Done
from modeshift.modes.plain_data import JsonObject
from modeshift.threads.deps import AgentDeps
from modeshift.threads.seats import Seat
from modeshift.tools.network import idempotency_key
from modeshift.tools.processes.background import Calling, Ran, current_calling


async def run_tool(
    seat: Seat, judged: Judged, context: Calling, config: RunnableConfig, key: str | None = None
) -> tuple[ToolMessage, JsonObject]:
    """The tool's message, and its state updates if its effect has ``updates_state``.

    A failure is a message too, with ``status="error"``. ``key`` is the call's in the journal; it
    is sent to others, who recognise by it a call that comes twice.
    """
    assert judged.tool is not None
    id = judged.id
    # As many characters as the window has tokens: a quarter of it, at four letters to a token.
    window = seat.model.window or repair.MAX_RESULT_CHARACTERS
    max_characters = min(repair.MAX_RESULT_CHARACTERS, window)
    # With paths and URL as they were resolved and judged, not as they may resolve by now.
    args = {**judged.call["args"], **judged.resolved}
    call = ToolCall(name=judged.call["name"], args=args, id=id, type="tool_call")
    tokens, ran = (current_calling.set(context), idempotency_key.set(key)), context.ran
    try:
        message = await judged.tool.runnable.ainvoke(call, config)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a tool of the user's raises
        text = repair.describe_failure(error, name_call(judged), id, max_characters)
        return repair.build_not_run_result(judged.call, text), {}
    finally:
        current_calling.reset(tokens[0])
        idempotency_key.reset(tokens[1])
    assert isinstance(message, ToolMessage)
    blocks = message.content if isinstance(message.content, list) else []
    images = [block for block in blocks if isinstance(block, dict) and block.get("type") == "image"]
    message.content = repair.truncate(message.text, max_characters)
    updates: JsonObject = {}
    if ran and message.artifact is None:
        message.artifact = {"exit_code": ran[-1].exit_code}
    if judged.effect.updates_state:
        updates, message.artifact = message.artifact, None
    elif judged.effect.result_is_data:
        text = repair.mark_as_data(message.content, name_call(judged), id)
        message.content = [{"type": "text", "text": text}, *images] if images else text
    return message, updates


def name_call(judged: Judged) -> str:
    """The tool with its file, command or address."""
    assert judged.tool is not None
    spec = judged.tool.spec
    names = (spec.command, spec.url, *spec.paths)
    values = [judged.call["args"].get(name) for name in names if name is not None]
    return " ".join([spec.name, *(str(value) for value in values if value is not None)])


def describe_call(
    deps: AgentDeps, seat: Seat, judged: Judged, ran: Sequence[Ran], is_success: bool
) -> Done:
    """A call that has run, or may have, as facts follow from it; ``ran`` are its commands."""
    assert judged.tool is not None
    spec, effect = judged.tool.spec, judged.effect
    is_held = spec.sandboxed and (
        judged.verdict.changes_nothing or seat.edit_restriction is not None
    )
    written = judged.edited_paths if is_success else ()
    grant = seat.mode.grant(spec.group) if written and spec.group is not None else None
    # Of one in the read-only sandbox nothing follows: there even the tests may end otherwise.
    last = ran[-1] if len(ran) == 1 and not judged.verdict.is_closed_off else None
    return Done(
        tool=spec.name,
        mode=seat.mode.slug,
        is_success=is_success,
        written=written,
        in_limit=written if grant is not None and grant.file_regex is not None else (),
        may_have_written=effect.changes_the_world
        and not effect.stays_outside
        and not (effect.runs_programs and is_held),
        line=last.line if last and not last.goes_on else None,
        folder=last.folder if last else ".",
        exit_code=last.exit_code if last else None,
        runs_tests=is_test_run(deps, last) if effect.runs_programs else False,
    )


def is_test_run(deps: AgentDeps, ran: Ran | None) -> bool:
    """Whether it is the owner's test command, word for word, in the workspace's own folder."""
    command = deps.tests and deps.tests.command
    return ran is not None and (ran.line, ran.folder) == (command, ".")
