// The list of threads: open, new, rename, delete.
import { attempt, call } from "/app/api.js";
import { button, confirm, h, iconButton } from "/app/dom.js";

const FIELDS = ["thread_id", "metadata", "status", "updated_at"];
const STATUS = { busy: "works", interrupted: "waits for you", error: "failed" };
const PAGE = 40;
const ALL = 1000; // are searched

export class Threads {
  constructor(root, { hasFiles, onopen, onchange }) {
    Object.assign(this, { hasFiles, onopen, onchange, count: PAGE, known: [], current: null });
    this.list = h("ul", {});
    this.more = button(
      "More",
      () => {
        this.count += PAGE;
        this.refresh();
      },
      { class: "quiet", hidden: true },
    );
    this.search = h("input", {
      type: "search",
      "aria-label": "Search threads",
      placeholder: "Search",
      oninput: () => this.refresh().then(() => this.draw()),
    });
    root.append(
      h(
        "div",
        { class: "row brand" },
        h("b", {}, "Modeshift"),
        button("New thread", () => onopen(null), { class: "main", id: "new" }),
      ),
      this.search,
      this.list,
      this.more,
      h("p", { class: "faint" }, h("a", { href: "/docs" }, "The server's API")),
    );
    setInterval(() => document.hidden || this.refresh(), 5000);
  }

  titleOf(id) {
    const thread = this.known.find((thread) => thread.thread_id === id);
    return thread?.metadata?.title || (id ? `Thread ${id.slice(0, 8)}` : "New thread");
  }

  async refresh() {
    let threads;
    try {
      threads = await call("POST", "/threads/search", {
        limit: this.search.value ? ALL : this.count,
        sort_by: "updated_at",
        sort_order: "desc",
        select: FIELDS,
      });
    } catch {
      return; // the thread that is open says so
    }
    const text = JSON.stringify([threads, this.current]),
      isNew = text !== this.text;
    [this.text, this.known] = [text, threads];
    if (isNew) this.draw();
    this.onchange(threads);
  }

  // The open thread's status is known before the list is read again.
  drawNow() {
    if (this.now() !== this.drawn) this.draw();
  }

  draw() {
    const words = this.search.value.trim().toLowerCase();
    const found = this.known.filter(
      ({ thread_id: id }) => !words || this.titleOf(id).toLowerCase().includes(words),
    );
    this.drawn = this.now();
    this.more.hidden = Boolean(words) || this.known.length < this.count;
    const place = document.activeElement?.dataset?.at;
    this.list.replaceChildren(
      ...found.map((thread) => this.row(thread)),
      found.length || !words ? "" : h("li", { class: "faint" }, "No title has this in it."),
    );
    if (place) this.list.querySelector(`[data-at="${CSS.escape(place)}"]`)?.focus();
  }

  row({ thread_id: id, status: listed, updated_at: when }) {
    const title = this.titleOf(id),
      isCurrent = id === this.current,
      status = isCurrent && listed !== "error" ? this.now() : listed;
    return h(
      "li",
      { class: isCurrent ? "current" : "" },
      h(
        "a",
        { href: `#${id}`, "aria-current": isCurrent ? "page" : null, "data-at": id },
        h("bdi", { class: "title" }, title),
        h(
          "small",
          {},
          STATUS[status]
            ? h("b", { class: status }, STATUS[status])
            : new Date(when).toLocaleString([], { dateStyle: "short", timeStyle: "short" }),
        ),
      ),
      iconButton("✎", `Rename ${title}`, () => this.rename(id, title), {
        "data-at": `rename ${id}`,
      }),
      iconButton("✕", `Delete ${title}`, () => this.remove(id, title), {
        "data-at": `delete ${id}`,
      }),
    );
  }

  async rename(id, title) {
    const input = h("input", { value: title, maxlength: 200, "aria-label": "Title" });
    if (!(await confirm("Rename the thread", input, "Rename"))) return;
    await attempt(() =>
      call("PATCH", `/threads/${id}`, { metadata: { title: input.value.trim() } }),
    );
    this.refresh();
  }

  async remove(id, title) {
    const rest = "” and all that was said in it is deleted.";
    const files = this.hasFiles ? " Files that it wrote stay." : "";
    const text = h("p", {}, "“", h("bdi", {}, title), rest, files);
    const buttons = { no: "Keep it", kind: "danger" };
    if (!(await confirm("Delete the thread?", text, "Delete", buttons))) return;
    const isGone = await attempt(() => call("DELETE", `/threads/${id}`).then(() => true));
    if (isGone && id === this.current) this.onopen(null);
    this.refresh();
  }
}
