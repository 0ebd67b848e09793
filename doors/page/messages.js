// The conversation: what was said and done, drawn anew only where it has changed.
import { button, copyButton, h } from "/app/dom.js";
import { changeView } from "/app/diff.js";
import { markdown } from "/app/markdown.js";
import { textOf } from "/app/state.js";
import { resultOf, titleOf } from "/app/words.js";

const FOLDED = 1500; // characters of a result that are shown at first
const AT_ONCE = 100_000;
const MARKS = { done: "✓", failed: "!", rejected: "✕", running: "…" };
const SAID = { done: "done", failed: "did not work", rejected: "rejected by you", running: "not done yet" };

export class Messages {
  constructor(root, modes) {
    this.root = root;
    this.modes = modes;
    this.drawn = new Map();
  }

  draw(thread) {
    const wanted = [...this.list(thread)];
    const keys = new Set(wanted.map((one) => one.key));
    for (const [key, { node }] of this.drawn) {
      if (keys.has(key)) continue;
      node.remove();
      this.drawn.delete(key);
    }
    let place = this.root.firstChild;
    for (const { key, depends, make, refresh } of wanted) {
      let known = this.drawn.get(key);
      if (!known || known.depends.some((one, n) => one !== depends[n])) {
        const isUpdated = known && refresh?.(known.node);
        const node = isUpdated ? known.node : make();
        if (known && !isUpdated) {
          if (place === known.node) place = node;
          known.node.replaceWith(node);
        }
        known = { node, depends };
        this.drawn.set(key, known);
      }
      if (known.node === place) place = place.nextSibling;
      else this.root.insertBefore(known.node, place);
    }
  }

  // Those that wait for a sub-task first, each with what it waits for below it.
  *list({ values, live, output }) {
    const parents = values.parents ?? [];
    const ended = new Map((values.subtasks ?? []).map((one) => [one.id, one]));
    for (const [depth, parent] of parents.entries()) yield* this.conversation(parent.messages, { depth, ended, output });
    const messages = [...(values.messages ?? []), ...live.values()];
    yield* this.conversation(messages, { depth: parents.length, ended, output });
  }

  *conversation(messages, { depth, ended, output }) {
    const results = new Map(messages.filter((one) => one.type === "tool").map((one) => [one.tool_call_id, one]));
    for (const [n, message] of messages.entries()) {
      const text = textOf(message);
      if (message.type === "human") {
        const who = depth && n === 0 ? "Task" : "You";
        yield { key: message.id, depends: [text], make: () => said("human", who, depth, h("div", { class: "plain" }, text)) };
      } else if (message.type === "ai") {
        if (text.trim()) yield this.answer(message, text, depth);
        const calls = message.isLive ? Object.values(message.calls) : message.tool_calls ?? [];
        for (const [m, call] of calls.entries()) yield this.call(call, message, m, depth, results.get(call.id), ended.get(call.id), output.get(call.id));
      }
    }
  }

  answer(message, text, depth) {
    return {
      key: message.id,
      depends: [text, message.isLive ?? false],
      make: () => said("ai", "Agent", depth, message.isLive ? h("div", { class: "markdown plain" }, text) : markdown(text)),
      refresh: (node) => {
        if (!message.isLive) return false;
        node.lastChild.replaceChildren(h("i", {}, text).firstChild);
        return true;
      },
    };
  }

  call(call, message, number, depth, result, subtask, output) {
    const shown = message.isLive ? { ...call, args: {} } : call;
    return {
      key: `call ${message.id} ${number}`,
      depends: [message.isLive ?? false, call.name, result, subtask, result ? null : output],
      make: () => this.card(shown, depth, result, subtask, output),
      refresh: (node) => {
        const place = node.querySelector(".live");
        if (result || message.isLive || !output || !place) return false;
        place.replaceChildren(h("i", {}, output).firstChild);
        return true;
      },
    };
  }

  card(call, depth, message, subtask, output) {
    const result = message ? resultOf(message) : { kind: "running" };
    const body = h("div", { class: "body" });
    const isWrite = typeof call.args.content === "string" && message?.artifact && "replaced" in message.artifact;
    const card = h("details", { class: `call ${result.kind} depth${Math.min(depth, 3)}`, open: Boolean(output) && !message },
      h("summary", {}, h("span", { class: "mark", "aria-hidden": "true" }, MARKS[result.kind]),
        h("span", { class: "unseen" }, `${SAID[result.kind]}: `), h("bdi", {}, titleOf(call, this.modes)),
        result.changed ? h("span", { class: "tag" }, "changed by you") : null,
        ["failed", "rejected"].includes(result.kind) ? h("span", { class: "why" }, result.text.slice(0, 200)) : null),
      body);
    const fill = () => {
      if (!card.open || body.firstChild) return;
      body.append(...argumentsView(result.changed ?? call.args, isWrite));
      if (result.changed) body.append(h("p", { class: "faint" }, "You changed the arguments; the agent had written:"), ...argumentsView(call.args, false));
      if (isWrite) body.append(writtenView(call, message));
      if (result.text) body.append(longText(result.text));
      if (!message) body.append(h("pre", { class: "live" }, output ?? ""));
      if (subtask) body.append(h("div", { class: "subtask" }, ...[...this.conversation(subtask.messages, { depth: 1, ended: new Map(), output: new Map() })].map((one) => one.make())));
    };
    card.addEventListener("toggle", fill);
    fill();
    return card;
  }
}

function said(kind, who, depth, content) {
  return h("article", { class: `${kind} depth${Math.min(depth, 3)}`, "aria-label": who }, h("div", { class: "who" }, who), content);
}

function argumentsView(args, isWrite) {
  const given = Object.entries(args).filter(([name]) => !isWrite || name !== "content");
  if (!given.length) return [];
  const show = (value) => (typeof value === "string" ? longText(value) : longText(JSON.stringify(value, null, 1)));
  return [h("dl", { class: "arguments" }, given.map(([name, value]) => [h("dt", {}, name), h("dd", {}, show(value))]))];
}

function writtenView(call, message) {
  const before = message.artifact.replaced, lines = [];
  for (const line of (before ?? "").split("\n")) if (before !== null) lines.push(["-", line]);
  for (const line of call.args.content.split("\n")) lines.push(["+", line]);
  return changeView({ path: call.args.path, before, after: call.args.content, lines });
}

// Text that may be long: its beginning, and the rest a piece at a time.
export function longText(text, size = FOLDED) {
  const pre = h("pre", { tabindex: 0 }, text.slice(0, size));
  if (text.length <= size) return pre;
  let shown = size;
  const label = () => `Show more (${(text.length - shown).toLocaleString("en")} characters left)`;
  const more = button(label(), () => {
    pre.append(...h("i", {}, text.slice(shown, shown + AT_ONCE)).childNodes);
    shown += AT_ONCE;
    if (shown < text.length) more.textContent = label();
    else more.remove();
  }, { class: "quiet" });
  return h("div", {}, pre, h("div", { class: "row" }, more, copyButton(() => text)));
}
