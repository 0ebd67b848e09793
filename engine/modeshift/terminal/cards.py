"""``Cards``: asks a person about calls, and turns their choices into decisions."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from prompt_toolkit.application import run_in_terminal

from modeshift.calls.previews import Preview, preview_call
from modeshift.calls.requests import ActionRequest
from modeshift.calls.ways import list_suggestions
from modeshift.modes.plain_text import make_readable, to_one_line
from modeshift.modes.policy import Approvals
from modeshift.terminal.choosing import Choice
from modeshift.terminal.pager import NO_EDITOR, edit_text
from modeshift.terminal.panel import Panel, WentBackError
from modeshift.terminal.plain import PlainPanel
from modeshift.terminal.screen import ALERT, BOLD, FAINT, Screen, count_lines
from modeshift.terminal.transcript import call_title, find_effect
from modeshift.thread import GivenDecision
from modeshift.threads.deps import AgentDeps
from modeshift.threads.mailbox import StateValues

_COMMAND = re.compile(r"/[\w-]+")
NO = Choice("r", "No", "n")
APPROVALS_BY_KEY: Mapping[str, GivenDecision] = {
    "a": {},
    "t": {"remember": True},
    "u": {"approvals": Approvals.AUTO.value},
    "all": {"context": "all"},
    "plan": {"context": "plan"},
}
AT_ONCE = (Choice("o", "One by one"), Choice("r", "No to all", "n"), Choice("a", "Yes to all", "y"))


@dataclass(frozen=True)
class Cards:
    """Asks about the calls that wait in a thread with this ``state``."""

    screen: Screen
    panel: Panel | PlainPanel
    deps: AgentDeps
    state: StateValues

    async def decide(self, actions: Sequence[ActionRequest]) -> list[GivenDecision]:
        """Show the calls that wait, and wait for a decision: for all at once, or for each."""
        self.screen.folded = ""
        effects = [find_effect(self.deps, action["name"]) for action in actions]
        has_own_card = any(effect.takes_answer or effect.switches_mode for effect in effects)
        if len(actions) > 1 and not has_own_card:
            for action in actions:
                self._show_call(action, await self._preview(action))
            while True:
                key = await self.panel.choose(f"{len(actions)} calls", AT_ONCE, "r")
                if key == "a":
                    return [{"type": "approve"} for _ in actions]
                if key == "o":
                    break
                with suppress(WentBackError):
                    return [await self._reject()] * len(actions)
        return [await self._decide_one(action) for action in actions]

    async def _decide_one(self, action: ActionRequest) -> GivenDecision:
        effect = find_effect(self.deps, action["name"])
        if effect.takes_answer:
            return await self._answer(action)
        preview = await self._preview(action)
        if effect.switches_mode:
            self.screen.gap()
            self.screen.words(action["description"])
            for plan in preview["switch"]["plans"] if preview and "switch" in preview else []:
                self.screen.words(f"{plan['path']}:", BOLD)
                self.screen.text(plan)
            title, choices = "", self._list_switch_choices(action)
        else:
            title = self._show_call(action, preview)
            choices = _list_call_choices(action, is_tool=preview is not None)
        while True:
            key = await self.panel.choose(title, choices, NO.key)
            with suppress(WentBackError):
                return await self._complete(action, key)

    async def _complete(self, action: ActionRequest, key: str) -> GivenDecision:
        """The decision for a key, with what else that asks for; raises ``WentBackError``."""
        if key in APPROVALS_BY_KEY:
            return {"type": "approve", **APPROVALS_BY_KEY[key]}
        args = action["args"]
        match key:
            case "p":
                pattern = await self.panel.read_answer("  pattern> ", action["pattern"])
                return {"type": "approve", "remember": pattern}
            case "comment":
                plan = action["plan"]["text"]
                text = await run_in_terminal(lambda: edit_text(plan), in_executor=True)
                if message := list_comments(plan, text or ""):
                    return {"type": "reject", "message": message}
                self.screen.words("Begin a comment with > below a line." if text else NO_EDITOR)
                raise WentBackError
            case "e":
                args = await self._edit(args)
            case "m":
                args = {**args, "mode_slug": await self._pick_mode(action)}
            case _:
                return await self._reject()
        return {"type": "edit", "edited_action": {"name": action["name"], "args": args}}

    async def _preview(self, action: ActionRequest) -> Preview | None:
        mode, written = str(self.state.get("mode")), self.state.get("written") or []
        return await asyncio.to_thread(preview_call, self.deps, action, mode, written)

    def _show_call(self, action: ActionRequest, preview: Preview | None) -> str:
        """Show the call; returns what stands directly above the choices."""
        title = call_title(self.deps, action["name"], action["args"])
        self.screen.gap()
        self.screen.line(title, BOLD)
        shown: list[str] = []
        above = ""
        if preview and (host := preview.get("host")):
            self.screen.words(f"reaches {host}", ALERT)
        if preview and (change := preview.get("change")):
            shown, above = preview["shows"], count_lines(change)
            if change["path"] not in title:
                self.screen.line(f"  {change['path']}")
            self.screen.diff(change)
        for name, value in action["args"].items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if name not in shown and text not in (title, title.removeprefix("$ ")):
                self.screen.block(f"{name}: {text}")
        self.screen.words(action["description"])
        return above

    def _list_switch_choices(self, action: ActionRequest) -> list[Choice]:
        choices = [NO, Choice("a", "Yes", "y"), Choice("m", "Another mode")]
        if (plan := action.get("plan")) and plan["path"]:
            whole, fresh = ("all", "the conversation"), ("plan", "the plan alone")
            key, text = whole if plan["context"] == "plan" else fresh
            choices.append(Choice("comment", "No, with comments on the plan", "e"))
            choices.append(Choice(key, f"Yes, going on with {text}", "c"))
        if self.state.get("approvals") != Approvals.AUTO:
            words = self.deps.approval_words[Approvals.AUTO]
            choices.append(Choice("u", f"Yes, and {words.name.lower()}. {words.sentence}"))
        return choices

    async def _pick_mode(self, action: ActionRequest) -> str:
        taken, deps = (self.state.get("mode"), action["args"].get("mode_slug")), self.deps
        usable = [slug for slug, mode in deps.catalog.items() if not deps.models.problem(mode)]
        modes = dict(enumerate((slug for slug in usable if slug not in taken), 1))
        for number, slug in modes.items():
            self.screen.words(f"{number} {slug}")
        while True:
            answer = (await self.panel.read_answer("  mode> ")).strip()
            answer = modes[int(answer)] if answer in map(str, modes) else answer
            if answer in modes.values():
                return answer
            self.screen.words("Type a number or a name; Esc leads back.")

    async def _answer(self, action: ActionRequest) -> GivenDecision:
        labels = list_suggestions(action["args"])
        question, *_ = action["description"].rsplit("\n- ", len(labels))
        self.screen.gap()
        self.screen.words(question, BOLD)
        choices = [Choice(f"#{n}", label) for n, label in enumerate(labels)]
        choices.append(Choice("w", "In other words"))
        first = next((n for n, slug in enumerate(labels.values()) if slug is None), len(labels))
        while True:
            key = "w"
            if labels:  # Enter without a look switches no mode
                key = await self.panel.choose("", choices, "", first)
            if key == "":
                raise KeyboardInterrupt
            if key != "w":
                return {"type": "respond", "message": [*labels][int(key[1:])]}
            try:
                answer = (await self.panel.read_answer("  answer> ")).strip()
                if _COMMAND.fullmatch(answer):
                    self.screen.words(f"{answer} is a command; Esc leaves the question open.")
                elif answer:
                    return {"type": "respond", "message": answer}
            except WentBackError:
                if not labels:
                    raise KeyboardInterrupt from None

    async def _reject(self) -> GivenDecision:
        why = (await self.panel.read_answer("  why (or nothing)> ")).strip()
        return {"type": "reject", "message": why} if why else {"type": "reject"}

    async def _edit(self, args: Mapping[str, object]) -> dict[str, object]:
        """Let a person edit each argument: text as it is, other values as JSON."""
        edited = dict(args)
        for name, value in args.items():
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if make_readable(shown) != shown:
                self.screen.words(f"{name} stays: it has characters that do not show.", ALERT)
                continue
            if "\n" in shown:
                self.screen.words("Ctrl-J begins a line, Enter ends the text.", FAINT)
            edited[name] = await self._read_value(f"  {name}> ", shown, value)
        return edited

    async def _read_value(self, prompt: str, shown: str, value: object) -> object:
        while True:
            answer = await self.panel.read_answer(prompt, shown)
            if isinstance(value, str):
                return answer
            try:
                return json.loads(answer)
            except ValueError as error:
                self.screen.words(f"That is not JSON: {error}", ALERT)


def _list_call_choices(action: ActionRequest, *, is_tool: bool) -> list[Choice]:
    choices = [NO, Choice("a", "Yes", "y")]
    if is_tool:
        choices.append(Choice("e", "Yes, with changes"))
    if "remember" in action:
        choices.append(Choice("t", f"Yes, and always: {to_one_line(action['remember'])}"))
    if "pattern" in action:
        choices.append(Choice("p", "Yes, and always a pattern"))
    return choices


def list_comments(plan: str, edited: str) -> str:
    """The lines that begin with ``>`` and are not the plan's, each with the plan's line before."""
    lines, at, comments = plan.splitlines(), 0, list[str]()
    for line in edited.splitlines():
        if line in lines[at : at + 1]:
            at += 1
        elif line.startswith(">"):
            about = f"line {at}: {lines[at - 1]}" if at else "all"
            comments.append(f"{about} — {line[1:].strip()}")
    return "\n".join(comments)
