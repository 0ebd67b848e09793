// Beside the conversation: the state machine, its history, what is allowed, files, the limit.
import { attempt, call } from "/app/api.js";
import { changeView } from "/app/diff.js";
import { button, h, list } from "/app/dom.js";
import { Machine } from "/app/machine.js";
import { PHASES, describeAllowed } from "/app/words.js";

const WHO = { human: "you approved", host: "set by hand", nobody: "by itself" };

const LIMIT = "In whatever mode, the thread has no right that this mode has not.";

export class Details {
  constructor(root, { modes, chart, thread, onset }) {
    Object.assign(this, { modes, thread, onset });
    this.machine = new Machine(modes, chart);
    this.limit = h(
      "select",
      { "aria-label": "Limit", onchange: () => onset({ limit: this.limit.value || null }) },
      h("option", { value: "" }, "no limit"),
      [...modes.values()].map((mode) => h("option", { value: mode.slug }, `at most ${mode.name}`)),
    );
    this.parts = Object.fromEntries(
      ["Allowed in this thread", "Workspace", "Files", "History", "Notices"].map((name) => [
        name,
        h("div", {}),
      ]),
    );
    root.append(
      section(
        "State",
        this.machine.node,
        h("label", { class: "field", title: LIMIT }, "Limit ", this.limit),
      ),
      ...Object.entries(this.parts).map(([name, node]) => section(name, node)),
    );
  }

  draw(settings) {
    const { values } = this.thread;
    this.machine.draw(
      settings,
      this.thread.interrupt
        ? values.phase && !PHASES[values.phase]
          ? values.phase
          : "reviewing"
        : this.thread.isRunning
          ? (values.phase ?? "thinking")
          : "idle",
      values.mode_changes ?? [],
      values.facts,
    );
    this.limit.value = settings.limit ?? "";
    this.put("Allowed in this thread", settings.remembered, (approvals) =>
      list("ul", { class: "allowed" }, approvals, (approval) => [
        h("bdi", {}, describeAllowed(approval, this.modes)),
        button("Take back", () => this.onset({ forget: [approval.id] }), { class: "quiet" }),
      ]),
    );
    this.put("Workspace", values.workspace ? [values.workspace] : [], (names) =>
      h("bdi", {}, names[0]),
    );
    const changes = values.mode_changes ?? [];
    const files = [
      ...new Set([...changes.flatMap((change) => change.written ?? []), ...(values.written ?? [])]),
    ];
    this.put("Files", files, (names) =>
      h("div", { class: "files" }, names.map((name) => this.file(name))),
    );
    this.put("History", changes, () =>
      list("ol", { class: "history" }, changes, (change) => [
        h("b", {}, this.name(change.source), " → ", this.name(change.target)),
        h(
          "small",
          {},
          ` ${WHO[change.decided_by] ?? change.decided_by}` +
            (change.how && change.decided_by !== "host" ? ` (${change.how})` : "") +
            ", " +
            new Date(change.when).toLocaleTimeString(),
        ),
        change.decided_by === "host" ? null : h("p", {}, change.reason),
      ]),
    );
    this.put("Notices", values.notices ?? [], (notices) => list("ul", {}, notices, String));
  }

  // The diff is asked for when it is opened: it is of the file as it is then.
  file(name) {
    const place = h("div", {});
    const node = h("details", {}, h("summary", {}, h("bdi", {}, name)), place);
    node.addEventListener("toggle", async () => {
      if (!node.open) return;
      const changes = await attempt(() => call("GET", `/threads/${this.thread.id}/files`));
      const change = changes?.find((file) => file.path === name);
      place.replaceChildren(change ? changeView(change, "Diff since the thread began") : "");
    });
    return node;
  }

  name = (slug) => h("bdi", {}, this.modes.get(slug)?.name ?? slug);

  put(name, list, make) {
    const node = this.parts[name],
      text = JSON.stringify(list);
    node.parentNode.hidden = list.length === 0;
    if (node.dataset.text === text) return;
    node.dataset.text = text;
    node.replaceChildren(make(list));
  }
}

const section = (title, ...content) => h("section", {}, h("h2", {}, title), ...content);
