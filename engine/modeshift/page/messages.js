// The conversation: what was said and done, drawn anew only where it has changed.
import { button, copyButton, h, iconButton, readable } from "/app/dom.js";
import { changeView } from "/app/diff.js";
import { markdown } from "/app/markdown.js";
import { imagesOf, textOf } from "/app/state.js";
import { resultOf, titleOf } from "/app/words.js";

const FOLDED = 1500; // characters of a result that are shown at first
const AT_ONCE = 100_000;
const MARKS = { done: "✓", failed: "!", rejected: "✕", running: "…", stopped: "■" };
const SAID = {
  done: "done",
  failed: "did not work",
  rejected: "rejected by you",
  running: "not done yet",
  stopped: "stopped",
};

export class Messages {
  // With what edits a message of one's own, and what undoes it.
  constructor(root, modes, onedit, onundo) {
    Object.assign(this, { root, modes, onedit, onundo, drawn: new Map() });
  }

  draw(thread) {
    const views = new Map(this.list(thread));
    for (const [key, { node }] of this.drawn) {
      if (views.has(key)) continue;
      node.remove();
      this.drawn.delete(key);
    }
    let place = this.root.firstChild;
    for (const [key, { depends, make }] of views) {
      let known = this.drawn.get(key);
      if (known?.depends.some((value, n) => value !== depends[n]) ?? true) {
        const node = make();
        if (place === known?.node) place = node;
        known?.node.replaceWith(node);
        this.drawn.set(key, (known = { node, depends }));
      }
      if (known.node === place) place = place.nextSibling;
      else this.root.insertBefore(known.node, place);
    }
    for (const [id, text] of thread.output) {
      this.root
        .querySelector(`[data-call="${CSS.escape(id)}"] .live`)
        ?.replaceChildren(readable(text));
    }
  }

  // Those that wait for a sub-task first, each with what it waits for below it.
  *list({ values, live, output, interrupt, isRunning }) {
    const parents = values.parents ?? [],
      messages = [...(values.messages ?? []), ...live.values()];
    const ended = new Map((values.subtasks ?? []).map((subtask) => [subtask.id, subtask]));
    // They have their cards.
    const asked = new Set(interrupt?.value.action_requests.map((request) => request.id));
    for (const [depth, conversation] of [...parents, { messages }].entries()) {
      if (depth) {
        const title = titleOf({ name: "new_task", args: parents[depth - 1].call.args }, this.modes);
        const text = `${title.split(":")[0]} begins`;
        yield [`begin ${depth}`, { depends: [text], make: () => boundary(text, depth) }];
      }
      const isOver = !isRunning && !interrupt && depth === parents.length;
      yield* this.conversation(conversation.messages, { depth, ended, output, asked, isOver });
    }
  }

  // Of each message and call its key, what it depends on, and how to make its node.
  *conversation(
    messages,
    { depth = 1, ended = new Map(), output = new Map(), asked = new Set(), isOver = false },
  ) {
    const results = new Map(
      messages
        .filter((message) => message.type === "tool")
        .map((message) => [message.tool_call_id, message]),
    );
    for (const [n, message] of messages.entries()) {
      const { id, type, isLive = false } = message,
        text = textOf(message);
      if (type === "human") {
        const who = depth && n === 0 ? "Task" : "You";
        yield [
          id,
          {
            depends: [text],
            make: () =>
              messageView(
                "human",
                who,
                depth,
                h("div", { class: "plain" }, text, imagesOf(message).map(imageView)),
                depth === 0 && message.content === text ? this.buttonsOf(message) : null,
              ),
          },
        ];
      }
      if (type !== "ai") continue;
      if (text.trim()) {
        const make = () =>
          messageView(
            "ai",
            "Agent",
            depth,
            isLive ? h("div", { class: "markdown plain" }, text) : markdown(text),
            isLive ? null : copyButton(() => text, "Copy this answer"),
          );
        yield [id, { depends: [text, isLive], make }];
      }
      const calls = isLive
        ? Object.values(message.calls).map((call) => ({ ...call, args: {} }))
        : (message.tool_calls ?? []);
      for (const [m, call] of calls.entries()) {
        if (asked.has(call.id)) continue;
        const result = results.get(call.id),
          subtask = ended.get(call.id),
          printed = output.get(call.id);
        const isStopped = isOver && !result;
        const make = () => this.card(call, depth, result, subtask, printed, isStopped);
        const isPrinted = Boolean(printed && !result);
        const depends = [isLive, call.name, result, Boolean(subtask), isPrinted, isStopped];
        yield [`call ${id} ${m}`, { depends, make }];
      }
    }
  }

  buttonsOf = (message) => [
    iconButton("✎", "Edit and run again", () => this.onedit(message)),
    iconButton("↶", "Undo from here", () => this.onundo(message)),
  ];

  card(call, depth, message, subtask, output, isStopped) {
    const result = message ? resultOf(message) : { kind: isStopped ? "stopped" : "running" },
      images = imagesOf(message ?? {});
    const body = h("div", { class: "body" });
    const card = h(
      "details",
      {
        class: `call ${result.kind} depth${Math.min(depth, 3)}`,
        "data-call": call.id,
        open: Boolean(output) && !message,
      },
      h(
        "summary",
        {},
        h("span", { class: "mark", "aria-hidden": "true" }, MARKS[result.kind]),
        h("span", { class: "unseen" }, `${SAID[result.kind]}: `),
        h("bdi", {}, titleOf(call, this.modes)),
        result.changed ? h("span", { class: "tag" }, "changed by you") : null,
        images.length
          ? h("span", { class: "tag" }, images.length > 1 ? `${images.length} images` : "1 image")
          : null,
        ["failed", "rejected"].includes(result.kind)
          ? h("span", { class: "why" }, result.text.slice(0, 200))
          : null,
      ),
      body,
    );
    const fill = () => {
      if (!card.open || body.firstChild) return;
      const args = result.changed ?? call.args,
        change = result.kind === "done" ? findChange(args, message.artifact) : null;
      body.append(change ? changeView(change) : argumentsView(args));
      if (result.changed)
        body.append(
          h("p", { class: "faint" }, "You changed the arguments; the agent had written:"),
          argumentsView(call.args),
        );
      if (result.text) body.append(longText(result.text));
      body.append(...images.map(imageView));
      if (!message) body.append(h("pre", { class: "live" }, output ?? ""));
      if (subtask)
        body.append(
          h(
            "div",
            { class: "subtask" },
            [...this.conversation(subtask.messages, {})].map(([, view]) => view.make()),
            boundary(`Sub-task ends: ${subtask.status}`, 1),
          ),
        );
    };
    card.addEventListener("toggle", fill);
    fill();
    return card;
  }
}

const imageView = (src) =>
  src
    ? h("img", { src, alt: "An image" })
    : h("p", { class: "faint" }, "An image that is not shown here");

const boundary = (text, depth) => h("p", { class: `boundary depth${Math.min(depth, 3)}` }, text);

function messageView(kind, who, depth, content, tool) {
  return h(
    "article",
    { class: `${kind} depth${Math.min(depth, 3)}`, "aria-label": who },
    h("div", { class: "who" }, who, tool),
    content,
  );
}

// All arguments but those that are shown in a better way.
export function argumentsView(args, ...shown) {
  const rest = Object.entries(args).filter(([name]) => !shown.includes(name));
  const show = (value) =>
    longText(typeof value === "string" ? value : JSON.stringify(value, null, 1));
  return h(
    "dl",
    { class: "arguments" },
    rest.map(([name, value]) => [h("dt", {}, name), h("dd", {}, show(value))]),
  );
}

// What a call has done to a file, as far as its arguments and its result say.
function findChange({ path, content, edits }, artifact) {
  const isWritten = typeof content === "string" && "replaced" in (artifact ?? {});
  const isEdited =
    Array.isArray(edits) &&
    edits.every((edit) => typeof edit.old === "string" && typeof edit.new === "string");
  if (!isWritten && !isEdited) return null;
  const before = isWritten ? artifact.replaced : undefined,
    after = isWritten ? content : undefined;
  const split = (sign, text) =>
    (text ?? null) === null
      ? []
      : text
          .replace(/\n$/, "")
          .split("\n")
          .map((line) => [sign, line]);
  const pairs = isWritten ? [[before, after]] : edits.map((edit) => [edit.old, edit.new]);
  return {
    path,
    before,
    after,
    lines: pairs.flatMap(([old, now]) => [...split("-", old), ...split("+", now)]),
  };
}

// Text that may be long: its beginning, and the rest a piece at a time.
export function longText(text, size = FOLDED) {
  const pre = h("pre", { tabindex: 0 }, text.slice(0, size));
  if (text.length <= size) return pre;
  let shown = size;
  const label = () => `Show more (${(text.length - shown).toLocaleString("en")} characters left)`;
  const more = button(
    label(),
    () => {
      pre.append(...h("i", {}, text.slice(shown, shown + AT_ONCE)).childNodes);
      shown += AT_ONCE;
      if (shown < text.length) more.textContent = label();
      else more.remove();
    },
    { class: "quiet" },
  );
  return h(
    "div",
    {},
    pre,
    h("div", { class: "row" }, more, copyButton(() => text)),
  );
}
