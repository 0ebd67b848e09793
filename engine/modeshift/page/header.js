// The line on top: thread, mode, approvals, model and tokens. What it shows is the thread's state.
import { button, get, h } from "/app/dom.js";
import { notifyButton } from "/app/notify.js";

export class Header {
  constructor(root, { modes, approvals, thread, onset }) {
    Object.assign(this, { modes, thread });
    this.title = h("h1", { class: "title" }, "");
    this.mode = h(
      "select",
      { id: "mode", "aria-label": "Mode", onchange: () => onset({ mode: this.mode.value }) },
      [...modes.values()].map(modeOption),
    );
    this.badge = h(
      "label",
      { class: "badge" },
      h("span", { class: "dot", "aria-hidden": "true" }),
      this.mode,
    );
    this.approvals = h(
      "select",
      {
        id: "approvals",
        "aria-label": "Approvals",
        onchange: () => onset({ approvals: this.approvals.value }),
      },
      approvals.map(({ value, name, sentence: title }) => h("option", { value, title }, name)),
    );
    this.note = h("span", { class: "note", role: "status" });
    this.usage = h("span", { class: "usage" });
    this.fill = h("meter", {
      min: 0,
      max: 1,
      high: 0.8,
      hidden: true,
      "aria-label": "Context window used",
    });
    root.append(
      panelButton("☰", "threads"),
      this.title,
      h("div", { class: "row" }, this.badge, this.approvals, this.note),
      h("div", { class: "row" }, this.usage, this.fill, notifyButton()),
      panelButton("◨", "details"),
    );
  }

  draw(title, settings) {
    const { values } = this.thread;
    if (this.title.textContent !== title) this.title.replaceChildren(h("bdi", {}, title));
    document.title = `${this.thread.interrupt ? "● " : ""}${this.title.textContent} - Modeshift`;
    const mode = this.modes.get(settings.mode);
    if (!mode && this.mode.value !== settings.mode)
      this.mode.append(modeOption({ slug: settings.mode, name: settings.mode }));
    this.mode.value = settings.mode;
    this.approvals.value = settings.approvals;
    this.badge.dataset.risk = mode?.risk ?? "high";
    this.note.textContent = [
      settings.is_pending && (this.thread.isRunning || this.thread.interrupt)
        ? "from the next step on"
        : "",
      settings.limit ? `at most ${this.modes.get(settings.limit)?.name ?? settings.limit}` : "",
      mode?.problem ?? "",
    ]
      .filter(Boolean)
      .join(" · ");
    const last = values.usage?.last,
      taken = Object.values(values.usage?.thread ?? {});
    const total = taken.reduce((sum, tokens) => sum + tokens.input + tokens.output, 0);
    this.usage.textContent = [
      last?.model ?? mode?.model ?? "",
      total ? `${total.toLocaleString("en")} tokens` : "",
    ].join(total ? " · " : "");
    this.fill.hidden = !(last?.used && last?.window);
    if (!this.fill.hidden) {
      this.fill.value = last.used / last.window;
      this.fill.title =
        [last.used, last.window].map((count) => count.toLocaleString("en")).join(" of ") +
        " tokens";
    }
  }
}

// In a narrow window a panel lies over the rest, until something else is clicked.
function panelButton(text, id) {
  const show = (isShown) => document.body.classList.toggle(`with-${id}`, isShown);
  document.addEventListener(
    "click",
    ({ target }) => target !== node && !get(id).contains(target) && show(false),
  );
  document.addEventListener("keydown", ({ key }) => key === "Escape" && show(false));
  const node = button(text, () => show(), {
    class: "icon menu",
    "aria-label": id === "threads" ? "Threads" : "Details",
  });
  return node;
}

const modeOption = ({ slug, name, description }) =>
  h("option", { value: slug, title: description }, name);
