// The line on top: thread, mode, approvals, model and tokens. What it shows is the thread's state.
import { button, h } from "/app/dom.js";

export const APPROVALS = { manual: "Asks before changes", auto: "Auto-accepts edits" };

export class Header {
  constructor(root, { modes, thread, onset }) {
    Object.assign(this, { modes, thread });
    this.title = h("h1", {}, "");
    this.mode = h("select", { id: "mode", "aria-label": "Mode", onchange: () => onset({ mode: this.mode.value }) });
    this.badge = h("label", { class: "badge" }, h("span", { class: "dot", "aria-hidden": "true" }), this.mode);
    this.approvals = h("select", { id: "approvals", "aria-label": "Approvals", onchange: () => onset({ approvals: this.approvals.value }) },
      Object.entries(APPROVALS).map(([value, text]) => h("option", { value }, text)));
    this.note = h("span", { class: "note", role: "status" });
    this.usage = h("span", { class: "usage" });
    this.fill = h("meter", { min: 0, max: 1, high: 0.8, hidden: true, "aria-label": "Context window used" });
    root.append(
      button("☰", () => document.body.classList.toggle("with-threads"), { class: "icon menu", "aria-label": "Threads" }),
      this.title, h("div", { class: "settings" }, this.badge, this.approvals, this.note), h("div", { class: "row" }, this.usage, this.fill),
      button("◨", () => document.body.classList.toggle("with-details"), { class: "icon menu", "aria-label": "Details" }));
  }

  draw(title, settings) {
    const { values, next } = this.thread;
    if (this.title.textContent !== title) this.title.replaceChildren(h("bdi", {}, title));
    document.title = `${this.thread.interrupt ? "● " : ""}${this.title.textContent} - Modeshift`;
    const mode = this.modes.get(settings.mode);
    const limit = settings.limit;
    this.list(settings.mode);
    this.mode.value = settings.mode;
    this.approvals.value = settings.approvals;
    this.badge.dataset.rights = rightsOf(mode);
    this.note.textContent = [
      next.is_pending && (this.thread.isRunning || this.thread.interrupt) ? "from the next step on" : "",
      limit ? `at most ${this.modes.get(limit)?.name ?? limit}` : "",
      mode?.problem ?? "",
    ].filter(Boolean).join(" · ");
    const last = values.usage?.last, taken = Object.values(values.usage?.thread ?? {});
    const total = taken.reduce((sum, one) => sum + one.input + one.output, 0);
    this.usage.textContent = `${last?.model ?? mode?.model ?? ""}${total ? ` · ${total.toLocaleString("en")} tokens` : ""}`;
    this.fill.hidden = !(last?.used && last?.window);
    if (!this.fill.hidden) {
      this.fill.value = last.used / last.window;
      this.fill.title = `${last.used.toLocaleString("en")} of ${last.window.toLocaleString("en")} tokens`;
    }
  }

  list(current) {
    const slugs = [...new Set([...this.modes.keys(), current])].filter(Boolean);
    if (slugs.join(" ") === this.listed) return;
    this.listed = slugs.join(" ");
    this.mode.replaceChildren(...slugs.map((slug) => h("option", { value: slug, title: this.modes.get(slug)?.description ?? null }, this.modes.get(slug)?.name ?? slug)));
  }
}

// How much a mode may do, for its colour: read, edit, run.
export function rightsOf(mode) {
  const groups = new Set((mode?.groups ?? []).map((one) => one.group));
  return groups.has("command") ? "run" : groups.has("edit") ? "edit" : "read";
}
