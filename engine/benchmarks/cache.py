"""``make bench``: what a thread's input costs where the provider keeps a cache.

The same conversation, step by step: as this project sends it, as it does with
``MODE_CHANGES=rewrite``, and as ``create_agent`` does with a middleware that filters the tools and
sets the prompt by mode. The requests are those of the real clients; the scripted provider counts
what of them is read from its cache, for a tenth of the price, and written to it, for a quarter
more. A price is in tokens of plain input. Answers cost the same everywhere, and are left out.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command

from benchmarks.contenders import ModeMiddleware
from modeshift.models.loading import Models
from modeshift.modes.policy import Approvals
from modeshift.threads.deps import AgentDeps
from modeshift.tools.toolbox import build_toolbox
from modeshift.tools.workspace.workspace import Workspace
from tests.harness.conversation import Conversation, make_agent
from tests.harness.modes import load_catalog
from tests.provider.prompt_cache import Input
from tests.provider.script import Answer, Call, call, say
from tests.provider.server import KEY, serving

MODES = ("architect", "code", "debug")
"""Those that are switched to; a thread starts in ask."""
TASK = "Read the files, one after the other, and say what is in them."
READ, WRITE = 0.1, 1.25


@dataclass(frozen=True)
class Service:
    """One wire format, with a model of it."""

    model: str
    way: str
    """For ``MODE_CHANGES``; a server that is not OpenAI's own is not known to take it."""
    parameters: dict[str, Any] = field(default_factory=dict)
    calls: int = 1
    """In each answer that reads."""

    def load(self, way: str | None = None) -> Models:
        """The model, which is told of changes in another way if one is given."""
        return Models(self.model, parameters=self.parameters, mode_changes=way or self.way)


SERVICES = {
    "Anthropic": Service("anthropic:claude-sonnet-5-5", "auto"),
    # With their results more than the service looks back for what it has.
    "Anthropic, 12 calls in an answer": Service("anthropic:claude-sonnet-5-5", "auto", calls=12),
    "OpenAI Responses": Service("openai:gpt-5.6", "auto", {"use_responses_api": True}),
    "Chat Completions": Service("openai:deepseek-v4-flash", "allowed_tools"),
}
Run = Callable[[Models, Path, int], Any]


async def run_modeshift(models: Models, folder: Path, steps: int) -> None:
    """This project; a person approves each switch."""
    talk = Conversation(make_agent(folder, models, Approvals.AUTO, catalog=load_catalog()))
    talk.config["recursion_limit"] = 10 * steps
    await talk.say(TASK)
    await talk.approve_all()


class SwappedPrompt(ModeMiddleware):
    """The words and the tools of this project's modes, in the system prompt and bound."""

    def __init__(self, deps: AgentDeps) -> None:
        self.prompts = {
            slug: SystemMessage(f"{deps.system_prompt}\n\n{deps.seat(slug).words}")
            for slug in deps.catalog
        }
        self.names = {slug: {*deps.seat(slug).model.names} for slug in deps.catalog}


@tool
def switch_mode(
    mode_slug: str, reason: str, tool_call_id: Annotated[str, InjectedToolCallId]
) -> Command[Any]:
    """Ask for another mode. A person decides; until then nothing changes."""
    result = ToolMessage(f"You are in {mode_slug} mode now: {reason}", tool_call_id=tool_call_id)
    return Command(update={"mode": mode_slug, "messages": [result]})


async def run_peer(models: Models, folder: Path, steps: int, *more: Any) -> None:
    """``create_agent`` with ``more`` middleware; its switches ask nobody."""
    catalog = load_catalog()
    toolbox = build_toolbox(Workspace(folder), catalog)
    deps = AgentDeps(catalog, toolbox, models)
    tools = [toolbox[spec.name].runnable for spec in toolbox.specs if spec.name != "switch_mode"]
    agent: Any = create_agent(
        models[catalog["ask"]], [*tools, switch_mode], middleware=[SwappedPrompt(deps), *more]
    )
    given = {"messages": [("user", TASK)], "mode": "ask"}
    await agent.ainvoke(given, {"recursion_limit": 10 * steps})


async def run_cached_peer(models: Models, folder: Path, steps: int) -> None:
    """The same with the middleware of ``langchain-anthropic`` that marks what is to be kept."""
    await run_peer(models, folder, steps, AnthropicPromptCachingMiddleware())


async def measure(service: Service, run: Run, way: str | None, steps: int) -> list[Input]:
    """The input of each request."""
    script = [*_script(steps, service.calls)]
    with tempfile.TemporaryDirectory() as folder, serving(script) as provider:
        for number in range(steps):
            lines = (f"line {line} of file {number}, of about this length\n" for line in range(60))
            (Path(folder) / f"{number}.txt").write_text("".join(lines))
        os.environ |= {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": KEY}
        os.environ |= {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}
        await run(service.load(way), Path(folder), steps)
        if provider.refused or provider.steps_left:
            raise RuntimeError(f"the script did not fit: {provider.refused}")
        return provider.inputs


def _script(steps: int, calls: int) -> Iterator[Answer]:
    each = steps // (len(MODES) + 1)
    for number in range(steps - 1):
        turn, rest = divmod(number + 1, each)
        if rest == 0 and turn <= len(MODES):
            yield call("switch_mode", mode_slug=MODES[turn - 1], reason="It is the next one's.")
        else:
            read = Call("read_file", {"path": f"{number}.txt"})
            yield Answer(f"I read file {number} now.", (read,) * calls)
    yield say("All read.")


def compute_price(inputs: list[Input]) -> float:
    """In tokens of plain input."""
    return sum(one.plain + READ * one.read + WRITE * one.written for one in inputs)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="40 by default, 8 at least")
    steps = parser.parse_args().steps
    title = f"input of {steps} steps, {len(MODES)} switches"
    print(f"{title:34}{'tokens':>10}{'read':>10}{'share':>8}{'price':>10}{'ratio':>8}")
    for name, service in SERVICES.items():
        runs: dict[str, tuple[Run, str | None]] = {"Modeshift": (run_modeshift, None)}
        if service.calls == 1:
            runs["MODE_CHANGES=rewrite"] = run_modeshift, "rewrite"
        if name.startswith("Anthropic"):
            runs["create_agent, cache middleware"] = run_cached_peer, None
        if service.calls == 1:
            runs["create_agent"] = run_peer, None
        found = {
            contender: asyncio.run(measure(service, run, way, steps))
            for contender, (run, way) in runs.items()
        }
        peer = next(contender for contender in found if contender.startswith("create_agent"))
        reference = compute_price(found[peer])
        print(name)
        for contender, inputs in found.items():
            total, read = sum(one.total for one in inputs), sum(one.read for one in inputs)
            price = compute_price(inputs)
            ratio = price / reference
            print(
                f"  {contender:32}{total:10}{read:10}{read / total:8.3f}{price:10.0f}{ratio:8.2f}"
            )
        ours = found["Modeshift"]
        most = 1 - ours[-1].total / sum(one.total for one in ours)
        print(f"  {'at most: each token once anew':32}{'':20}{most:8.3f}")


if __name__ == "__main__":
    main()
