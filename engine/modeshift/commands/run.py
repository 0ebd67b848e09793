"""``make run``: one message without a terminal, to the end of its turn."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Interrupt

from modeshift.agent import open_agent
from modeshift.calls.requests import build_title
from modeshift.commands.dev import DEFAULTS, find_server
from modeshift.commands.run_rules import RunRule, decide_by, load_rules
from modeshift.configuration.prices import Prices, load_prices
from modeshift.configuration.settings import load_settings
from modeshift.events import Wrote
from modeshift.messages.repair import show_result
from modeshift.models.ceiling import Ceiling
from modeshift.models.usage import Tokens, add_tokens
from modeshift.modes.errors import InvalidInputError, UserError
from modeshift.modes.phases import Phase
from modeshift.modes.plain_text import make_readable
from modeshift.thread import Run, Thread

EXIT_CODES = {"done": 0, "failed": 1, "denied": 3, "out of budget": 4}
"""Exit codes by how a run ends; 2 is for a wrong option, and 130 for Ctrl-C."""


def main(
    *,
    message: str | None = None,
    thread: str | None = None,
    rules: str | None = None,
    max_cost: str | None = None,
    json: bool = False,
    **host: str | None,
) -> NoReturn:
    """Say the message, print what the agent does, and exit; ``host`` is ``mode`` and ``limit``.

    Raises ``UserError`` for what is wrong before it runs.
    """
    if message is None and not sys.stdin.isatty():
        message = sys.stdin.read()
    if message is None or not message.strip():
        raise InvalidInputError('there is no message; give one: make run MSG="..."')
    try:
        ceiling = Ceiling.parse(max_cost) if max_cost is not None else None
    except ValueError as error:
        raise InvalidInputError(f"MAX_COST: {error}") from error
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    given = {key: value for key, value in host.items() if value is not None}
    run = _HeadlessRun(ceiling, Path(rules) if rules else None, as_json=json)
    try:
        status = asyncio.run(run.take(message, thread, given))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(EXIT_CODES[status])


class _OutOfBudgetError(Exception):
    """The run has reached its ceiling."""


@dataclass
class _HeadlessRun:
    """Runs one message, and decides on its questions."""

    ceiling: Ceiling | None
    rules_file: Path | None
    as_json: bool
    taken: dict[str, Tokens] = field(default_factory=dict)
    has_denied: bool = False
    ends: int = 0
    """How often the model has answered without a call."""

    async def take(self, text: str, id: str | None, host: Mapping[str, str]) -> str:
        """Run to the end of the turn; returns how it ended."""
        settings = load_settings()
        prices = await asyncio.to_thread(load_prices, settings)
        async with open_agent(settings, address=find_server(settings)) as agents:
            thread = await agents.find_thread(id)
            rules = load_rules(await thread.deps(), settings, self.rules_file)
            if await thread.question() is not None:
                raise InvalidInputError(f"the thread {thread.id} waits for a person's answer")
            error = None
            try:
                await self._go_on(thread, thread.say(text, **host), rules, prices)
                status = "denied" if self.has_denied else "done"
            except _OutOfBudgetError as spent:
                status, error = "out of budget", str(spent)
            except UserError as failure:
                status, error = "failed", str(failure)
            hint = f"; to go on with it: make chat THREAD={thread.id}"
            has_begun = bool((await thread.state()).values)
            cost = await asyncio.to_thread(prices.find_cost, self.taken)
            self._tell(
                "end",
                f"{error or status}{hint if has_begun else ''}",
                status=status,
                error=error,
                thread=thread.id,
                cost=None if cost is None else f"{cost:f}",
                taken=self.taken,
            )
            return status

    async def _go_on(
        self, thread: Thread, run: Run, rules: Sequence[RunRule], prices: Prices
    ) -> None:
        asked = dict[str, int]()
        while True:
            question = None
            async with aclosing(run.events()) as events:  # closing them stops the run
                async for event in events:
                    if isinstance(event, Interrupt):
                        question = event
                    elif isinstance(event, Wrote):
                        self._show(event)
                        await self._count(event, prices)
            if question is None:
                return
            first = question.value["action_requests"][0]
            is_own = first["id"] == question.value["question"]  # a node's, which no rule allows
            if is_own and self.ends > asked.setdefault(str({**first, "id": ""}), self.ends):
                return  # the node lets no turn end without a yes: it would ask without end
            deps, mode = await thread.deps(), (await thread.state()).values["mode"]
            decisions = []
            for action in question.value["action_requests"]:
                decision = await decide_by(rules, deps, action, mode)
                decisions.append(decision)
                is_denied = decision["type"] == "reject"
                self.has_denied |= is_denied
                title = build_title(deps, action["name"], action["args"])
                self._tell(
                    "decision",
                    f"{'Denied' if is_denied else 'Allowed by a rule'}: {title}",
                    mode=mode,
                    tool=action["name"],
                    args=action["args"],
                    description=action["description"],
                    decision=decision["type"],
                )
            run = thread.answer(question, decisions)

    async def _count(self, event: Wrote, prices: Prices) -> None:
        """Raise ``_OutOfBudgetError`` if the ceiling is reached and more would follow."""
        turn = (event.update.get("usage") or {}).get("turn") or {}
        self.taken = add_tokens(self.taken, turn)
        if self.ceiling is not None and turn and event.update.get("phase") != Phase.IDLE:
            spent = await asyncio.to_thread(self.ceiling.measure, self.taken, prices.find_cost)
            if spent >= self.ceiling.amount:
                raise _OutOfBudgetError(f"stopped at {self.ceiling} ({spent:,} were taken)")

    def _show(self, event: Wrote) -> None:
        if event.update.get("mode_changes"):
            mode = event.update.get("mode", "")
            self._tell("mode", f"Now in {mode} mode", mode=mode)
        for message in event.messages:
            if isinstance(message, AIMessage) and not event.is_repair:
                self.ends += not message.tool_calls
                self._tell(
                    "answer", message.text, text=message.text, calls=list(message.tool_calls)
                )
            elif isinstance(message, ToolMessage):
                text = show_result(message)
                self._tell(
                    "result",
                    f"{message.name}: {text}",
                    call=message.tool_call_id,
                    tool=message.name,
                    status=message.status,
                    text=text,
                )

    def _tell(self, kind: str, shown: str, **event: object) -> None:
        """Print an event: as JSON, or as text, of which answers alone go to standard output."""
        if self.as_json:
            print(json.dumps({"type": kind, **event}), flush=True)
        elif shown:
            stream = sys.stdout if kind == "answer" else sys.stderr
            print(make_readable(shown), file=stream, flush=True)
