"""``Cards``: asks a person about calls, and makes their keys decisions."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from modeshift.agent import GivenDecision
from modeshift.calls.previews import FileChange, Preview, preview_call
from modeshift.calls.requests import ActionRequest, build_title
from modeshift.calls.ways import list_suggestions
from modeshift.modes.effects import NO_EFFECT, Effect
from modeshift.modes.errors import InvalidCallError
from modeshift.modes.plain_text import make_readable, to_one_line
from modeshift.terminal.screen import ALERT, BOLD, FAINT, Keyboard, Screen
from modeshift.threads.deps import AgentDeps


class Cards:
    """The questions of one thread."""

    def __init__(self, screen: Screen, keyboard: Keyboard) -> None:
        self._screen = screen
        self._keyboard = keyboard

    async def decide(
        self, deps: AgentDeps, actions: Sequence[ActionRequest], state: Mapping[str, Any]
    ) -> list[GivenDecision]:
        """Show the calls that wait, and wait for a key: for all at once, or for each."""
        effects = [find_effect(deps, action["name"]) for action in actions]
        has_own_card = any(effect.takes_answer or effect.switches_mode for effect in effects)
        if len(actions) > 1 and not has_own_card:
            for action in actions:
                self._show_call(deps, action, await self._preview(deps, action, state))
            keys = {"o": "one by one", "r": "reject all", "a": "allow all"}
            offered = f"[o]ne by one [r]eject all [a]llow all {len(actions)}"
            match await self._ask(offered, keys, state, "o"):
                case "a":
                    return [{"type": "approve"} for _ in actions]
                case "r":
                    return [await self._reject()] * len(actions)
        return [await self._decide_one(deps, action, state) for action in actions]

    async def _decide_one(
        self, deps: AgentDeps, action: ActionRequest, state: Mapping[str, Any]
    ) -> GivenDecision:
        effect = find_effect(deps, action["name"])
        if effect.takes_answer:
            return await self._answer(action)
        preview = await self._preview(deps, action, state)
        if effect.switches_mode:
            self._screen.words(action["description"])
            for plan in preview["switch"]["plans"] if preview and "switch" in preview else []:
                self._screen.words(f"{plan['path']}:", BOLD)
                self._show_text(plan)
            return await self._decide_switch(deps, action, state)
        self._show_call(deps, action, preview)
        return await self._decide_call(action, state, is_tool=preview is not None)

    async def _preview(
        self, deps: AgentDeps, action: ActionRequest, state: Mapping[str, Any]
    ) -> Preview | None:
        mode, written = str(state.get("mode")), state.get("written") or []
        return await asyncio.to_thread(preview_call, deps, action, mode, written)

    def _show_call(self, deps: AgentDeps, action: ActionRequest, preview: Preview | None) -> None:
        title = build_title(deps, action["name"], action["args"])
        self._screen.line(title, BOLD)
        shown: list[str] = []
        if preview and (host := preview.get("host")):
            self._screen.words(f"reaches {host}", ALERT)
        if preview and (change := preview.get("change")):
            shown = preview["shows"]
            if change["path"] not in title:
                self._screen.lines([change["path"]])
            lines = [f"{sign}{line}" for sign, line in change["lines"]]
            self._screen.diff(lines[change["before"] is None :])  # not where a new file begins
            if "problem" in change:
                self._show_text(change)
        for name, value in action["args"].items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if name not in shown and text != title:
                self._screen.lines(f"{name}: {text}".split("\n"))
        self._screen.words(action["description"])

    def _show_text(self, file: FileChange) -> None:
        self._screen.lines(file["after"].splitlines())
        if "problem" in file:
            self._screen.words(file["problem"], ALERT)

    async def _decide_call(
        self, action: ActionRequest, state: Mapping[str, Any], *, is_tool: bool
    ) -> GivenDecision:
        keys, offered = {"r": "reject", "a": "allow"}, "[r]eject [a]llow"
        if is_tool:
            keys["e"], offered = "edit", f"{offered} [e]dit"
        if "remember" in action:
            keys["t"] = "always this"
            offered += f" always [t]his ({to_one_line(action['remember'])})"
        if "pattern" in action:
            keys["p"] = "always a pattern"
            offered += " always a [p]attern"
        match await self._ask(offered, keys, state):
            case "a":
                return {"type": "approve"}
            case "e":
                args = await self._edit(action["args"])
                return {"type": "edit", "edited_action": {"name": action["name"], "args": args}}
            case "t":
                return {"type": "approve", "remember": True}
            case "p":
                pattern = await self._keyboard.read_answer("  pattern> ", action["pattern"])
                return {"type": "approve", "remember": pattern}
        return await self._reject()

    async def _decide_switch(
        self, deps: AgentDeps, action: ActionRequest, state: Mapping[str, Any]
    ) -> GivenDecision:
        keys = {"r": "no", "a": "yes", "m": "another mode", "u": "yes, and auto-accept"}
        offered = "[r] no [a] yes [m] another mode [u] yes, and auto-accept"
        match await self._ask(offered, keys, state):
            case "a":
                return {"type": "approve"}
            case "u":
                return {"type": "approve", "approvals": "auto"}
            case "m":
                others = [
                    slug
                    for slug in deps.catalog
                    if slug not in (state.get("mode"), action["args"].get("mode_slug"))
                    and deps.models.problem(deps.catalog[slug]) is None
                ]
                slug = await self._pick(dict.fromkeys(others), "mode")
                args = {**action["args"], "mode_slug": slug}
                return {"type": "edit", "edited_action": {"name": action["name"], "args": args}}
        return await self._reject()

    async def _answer(self, action: ActionRequest) -> GivenDecision:
        labels = list_suggestions(action["args"])
        question, *_ = action["description"].rsplit("\n- ", len(labels))
        self._screen.words(question, BOLD)
        return {"type": "respond", "message": await self._pick(labels, "answer", is_free=True)}

    async def _pick(self, labels: Mapping[str, Any], what: str, *, is_free: bool = False) -> str:
        """One of the labels, by its number; other words only where ``is_free``."""
        numbered = {str(number): label for number, label in enumerate(labels, 1)}
        for number, label in numbered.items():
            self._screen.words(f"{number} {label}")
        while True:
            answer = (await self._keyboard.read_answer(f"  {what}> ")).strip()
            if answer in numbered or (is_free and answer):
                return numbered.get(answer, answer)
            self._screen.words("Give one of the numbers" + (", or an answer." if is_free else "."))

    async def _ask(
        self, offered: str, keys: Mapping[str, str], state: Mapping[str, Any], enter: str = "r"
    ) -> str:
        self._screen.words(f"approvals: {state.get('approvals')}; Enter is {keys[enter]}", FAINT)
        return await self._keyboard.read_key(f"  {offered}: ", keys, enter)

    async def _reject(self) -> GivenDecision:
        why = (await self._keyboard.read_answer("  why (or nothing)> ")).strip()
        return {"type": "reject", "message": why} if why else {"type": "reject"}

    async def _edit(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, each as a person leaves it: text as it is, other values as JSON."""
        edited = dict(args)
        for name, value in args.items():
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if make_readable(shown) != shown:
                self._screen.words(f"{name} stays: it has characters that do not show.", ALERT)
                continue
            if "\n" in shown:
                self._screen.words("Esc and then Enter end the text.", FAINT)
            edited[name] = await self._read_value(f"  {name}> ", shown, value)
        return edited

    async def _read_value(self, prompt: str, shown: str, value: Any) -> Any:
        while True:
            answer = await self._keyboard.read_answer(prompt, shown)
            if isinstance(value, str):
                return answer
            try:
                return json.loads(answer)
            except ValueError as error:
                self._screen.words(f"That is not JSON: {error}", ALERT)


def find_effect(deps: AgentDeps, name: str) -> Effect:
    """The effect of a tool; ``NO_EFFECT`` if there is no such tool."""
    try:
        return deps.toolbox[name].spec.effect
    except InvalidCallError:
        return NO_EFFECT
