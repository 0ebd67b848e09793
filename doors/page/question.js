// The cards of what waits for a person: a switch, a call, a question. The safe choice has the focus.
import { announce, button, get, h, toast } from "/app/dom.js";
import { changeView } from "/app/diff.js";
import { argumentsForm } from "/app/form.js";
import { longText } from "/app/messages.js";
import { markdown } from "/app/markdown.js";
import { titleOf } from "/app/words.js";

export class Question {
  constructor(root, modes, thread) {
    Object.assign(this, { root, modes, thread, shown: null });
  }

  draw() {
    const { interrupt, isRunning } = this.thread;
    const id = interrupt && !isRunning ? interrupt.value.question : null;
    if (id === this.shown) return;
    this.shown = id;
    this.root.replaceChildren();
    if (!id) return;
    const actions = interrupt.value.action_requests;
    const decisions = actions.map(() => null);
    const all = h("div", { class: "row all" });
    const send = button("Send these decisions", () => this.decide(id, decisions), { class: "main", disabled: true });
    const cards = actions.map((action, n) => {
      const take = (decision, said) => {
        if (actions.length === 1) return this.decide(id, [decision]);
        decisions[n] = decision;
        cards[n].querySelector(".chosen").textContent = said;
        send.disabled = decisions.includes(null);
        if (!send.disabled) send.focus();
      };
      const preview = this.thread.previews[n] ?? null;
      return this.card(action, interrupt.value.review_configs[n].allowed_decisions, preview, take);
    });
    if (actions.length > 1) {
      const each = (decision) => this.decide(id, actions.map(() => decision));
      const canApprove = interrupt.value.review_configs.every((one) => one.allowed_decisions.includes("approve"));
      all.append(button(`Reject all ${actions.length}`, () => each({ type: "reject" })), send,
        canApprove ? button(`Approve all ${actions.length}`, () => each({ type: "approve" })) : "");
    }
    this.root.append(...cards, ...(actions.length > 1 ? [all] : []));
    announce(`Waits for you: ${actions.map((one) => titleOf(one, this.modes)).join("; ")}`);
    const isTyping = get("say").value !== "" || (document.activeElement?.matches("input, textarea, select") && document.activeElement.id !== "say");
    if (!isTyping) this.root.querySelector(".safe")?.focus({ preventScroll: true });
  }

  decide(question, decisions) {
    if (this.thread.interrupt?.value.question !== question) {
      toast("This has been answered already.");
      return;
    }
    this.thread.decide(decisions);
    get("say").focus({ preventScroll: true });
  }

  card(action, allowed, preview, take) {
    const kind = preview?.switch ? "switch" : preview?.suggestions ? "question" : "";
    const [ways, content] =
      kind === "switch" ? [this.switchWays(action, preview, take), this.switchContent(action, preview)]
      : kind === "question" || allowed.includes("respond") ? [this.answerWays(preview, take), []]
      : [this.callWays(action, preview, take), this.callContent(action, preview)];
    const heading = kind === "question" ? "A question" : titleOf(action, this.modes);
    return h("section", { class: `card ${kind}`, "aria-label": heading },
      h("h2", {}, h("bdi", {}, heading)), h("p", { class: "says", tabindex: describe(action, preview).length > 400 ? 0 : null }, describe(action, preview)), content, ways, h("p", { class: "chosen", role: "status" }));
  }

  callContent(action, preview) {
    if (preview?.change) return changeView(preview.change);
    const tags = [];
    if (preview?.is_sandboxed === true) tags.push(h("span", { class: "tag good" }, "in the sandbox"));
    if (preview?.is_sandboxed === false) tags.push(h("span", { class: "tag bad" }, "not sandboxed: it has all your rights"));
    if (preview?.server) tags.push(h("span", { class: "tag bad" }, "calls the MCP server ", h("bdi", {}, preview.server)));
    if (preview?.host) tags.push(h("span", { class: "tag bad" }, "reaches ", h("bdi", {}, preview.host)));
    const rest = Object.entries(action.args).filter(([, value]) => value !== preview?.command);
    return [
      tags.length ? h("p", { class: "row" }, tags) : null,
      preview?.command !== undefined ? h("pre", { class: "command", tabindex: 0, "aria-label": "Command" }, preview.command) : null,
      rest.length ? h("dl", { class: "arguments" }, rest.map(([name, value]) => [
        h("dt", {}, name), h("dd", {}, longText(typeof value === "string" ? value : JSON.stringify(value, null, 1)))])) : null,
    ];
  }

  callWays(action, preview, take) {
    const why = h("input", { "aria-label": "Why not (it is told)", placeholder: "Why not? (optional)" });
    const no = () => take({ type: "reject", ...(why.value.trim() ? { message: why.value.trim() } : {}) }, "Reject");
    why.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), no()));
    const edit = h("div", {});
    return [
      h("div", { class: "row" },
        button("Reject", no, { class: "safe" }), why,
        button("Approve", () => take({ type: "approve" }, "Approve"), { class: "main" }),
        button("Edit", () => this.edit(edit, action, preview, take), { "aria-expanded": "false" })),
      edit,
      "remember" in action ? this.alwaysWays(action, take) : null,
    ];
  }

  alwaysWays(action, take) {
    const pattern = h("input", { "aria-label": "Pattern", value: action.remember });
    return h("details", { class: "always" }, h("summary", {}, "Always in this thread..."),
      h("p", {}, button("Always exactly this", () => take({ type: "approve", remember: true }, "Approve, always")), " ", h("code", {}, action.remember)),
      h("p", { class: "row" }, pattern, button("Always what matches", () => take({ type: "approve", remember: pattern.value }, `Approve, always ${pattern.value}`))));
  }

  edit(place, action, preview, take) {
    if (place.firstChild) return place.replaceChildren();
    const form = argumentsForm(preview?.arguments ?? {}, action.args);
    const problem = h("p", { class: "warning", role: "alert" });
    const run = button("Run it like this", () => {
      try {
        take({ type: "edit", edited_action: { name: action.name, args: form.read() } }, "Approve, edited");
      } catch (error) {
        problem.textContent = `This is no JSON: ${error.message}`;
      }
    }, { class: "main" });
    place.append(form.node, problem, h("div", { class: "row" }, run, button("Leave it", () => place.replaceChildren())));
    place.querySelector("input, textarea, select")?.focus();
  }

  switchContent(action, preview) {
    const { gained, lost, plans, says } = preview.switch;
    const more = says.replace(/^Tools gained: .*?\. Tools lost: .*?(\. |\.$)/, "");
    const list = (title, names, kind) => h("div", {}, h("h3", {}, title),
      names.length ? h("ul", { class: `tools ${kind}` }, names.map((name) => h("li", {}, h("code", {}, name)))) : h("p", { class: "faint" }, "none"));
    return [
      h("div", { class: "columns" }, list("Tools gained", gained, "plus"), list("Tools lost", lost, "minus")),
      more ? h("p", { class: "faint" }, more) : null,
      plans.map((plan) => h("details", { class: "plan", open: true }, h("summary", {}, "Handed over: ", h("bdi", {}, plan.path)),
        plan.problem ? h("p", { class: "warning" }, plan.problem) : markdown(plan.after))),
    ];
  }

  switchWays(action, preview, take) {
    const { source, target } = preview.switch;
    const name = (slug) => this.modes.get(slug)?.name ?? slug;
    const isTask = preview.switch.is_subtask;
    const why = h("input", { "aria-label": "Why not (it is told)", placeholder: "Why not? (optional)" });
    const no = () => take({ type: "reject", ...(why.value.trim() ? { message: why.value.trim() } : {}) }, "No");
    why.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), no()));
    const others = [...this.modes.keys()].filter((slug) => slug !== target && (isTask || slug !== source));
    const other = h("select", { "aria-label": "Another mode" }, others.map((slug) => h("option", { value: slug }, name(slug))));
    const choose = () => take({ type: "edit", edited_action: { name: action.name, args: { ...action.args, mode_slug: other.value } } }, `${name(other.value)} instead`);
    return [
      h("div", { class: "row" },
        button(isTask ? "No" : `No, stay in ${name(source)}`, no, { class: "safe" }), why,
        button(isTask ? "Start it" : `Switch to ${name(target)}`, () => take({ type: "approve" }, "Yes"), { class: "main" })),
      h("div", { class: "row" }, other, button("Take this mode instead", choose),
        button("Yes, and auto-accept", () => take({ type: "approve", approvals: "auto" }, "Yes, and auto-accept"))),
    ];
  }

  answerWays(preview, take) {
    const answer = h("textarea", { class: "safe", rows: 2, "aria-label": "Your answer", placeholder: "Your answer" });
    const respond = (text) => text.trim() && take({ type: "respond", message: text }, `Answer: ${text}`);
    answer.addEventListener("keydown", (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && (event.preventDefault(), respond(answer.value)));
    return [
      h("div", { class: "suggestions" }, (preview?.suggestions ?? []).map(({ label }) => button(label, () => respond(label)))),
      h("div", { class: "row" }, answer, button("Answer", () => respond(answer.value), { class: "main" }), button("Do not answer", () => take({ type: "reject" }, "No answer"))),
    ];
  }
}

// The server's own words; without what the card shows in a better way.
function describe(action, preview) {
  if (preview?.switch && !preview.switch.is_subtask) return action.args.reason;
  if (preview?.suggestions) return action.args.question;
  return action.description;
}
