// The cards of what waits for a person: a switch, a call, a question. The safe choice has focus.
import { announce, button, get, h, onEnter, toast } from "/app/dom.js";
import { changeView } from "/app/diff.js";
import { argumentsForm } from "/app/form.js";
import { argumentsView } from "/app/messages.js";
import { markdown } from "/app/markdown.js";
import { notify } from "/app/notify.js";
import { titleOf } from "/app/words.js";

const READING = 500; // milliseconds in which a card that is new is not answered
const CONTEXTS = { all: "Switch, with the conversation", plan: "Switch, with the plan alone" };
// A button's key, where its card has the focus; the styles show it.
const key = (letter) => ({ "data-key": letter, "aria-keyshortcuts": letter });

export class Question {
  constructor(root, modes, thread, approvals) {
    const auto = approvals.find(({ value }) => value === "auto");
    Object.assign(this, { root, modes, thread, auto, shown: null });
    root.addEventListener("keydown", (event) => this.press(event), true);
  }

  // A key that is held down, or was meant for what stood there before, answers nothing.
  press(event) {
    const { target, repeat, ctrlKey, metaKey, altKey, isComposing } = event;
    const isTyped = isComposing || target.matches("input, select, textarea");
    if (isTyped || ctrlKey || metaKey || altKey || event.key === "Tab") return;
    if (repeat || performance.now() - this.since < READING) return event.preventDefault();
    const found = target
      .closest(".card")
      ?.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    const isLetter = event.key.length === 1 && event.key !== " ";
    const first = this.first ?? "";
    this.first = null;
    clearTimeout(this.alone);
    if (isLetter && (first || !found)) return this.say(event, first + event.key);
    if (!found?.checkVisibility()) return;
    event.preventDefault();
    this.first = event.key;
    this.alone = setTimeout(() => {
      this.first = null;
      if (found.isConnected) found.click();
    }, READING);
  }

  // Two letters are words, and belong into the box: somebody who types a sentence answers nothing.
  say(event, text) {
    event.preventDefault();
    const box = get("say");
    box.focus();
    box.setRangeText(text, box.value.length, box.value.length, "end");
    box.dispatchEvent(new Event("input"));
  }

  draw() {
    const { interrupt, isRunning, previews } = this.thread;
    const id = interrupt && !isRunning ? interrupt.value.question : null;
    if (id === this.shown) return;
    this.shown = id;
    clearTimeout(this.alone);
    this.first = null;
    this.since = performance.now();
    this.root.replaceChildren();
    if (!id) return;
    const { action_requests: actions, review_configs: configs } = interrupt.value;
    const decide = (decisions) => this.decide(id, decisions);
    const all = actions.length > 1 ? new Several(actions, configs, decide) : null;
    const cards = actions.map((action, n) => {
      const take = (decision, said) =>
        all ? all.take(n, decision, said) : decision && decide([decision]);
      const draft = draftOf(`modeshift-edit-${this.thread.id}-${n}`, id);
      return this.card(action, configs[n].allowed_decisions, previews[n] ?? null, take, draft);
    });
    this.root.append(...cards, ...(all?.show(cards) ?? []));
    notify(this.modes.get(this.thread.values.mode)?.name ?? "");
    announce(`Waits for you: ${actions.map((one) => titleOf(one, this.modes)).join("; ")}`);
    const isTyping =
      get("say").value !== "" ||
      document.activeElement?.matches("input, select, textarea:not(#say)");
    if (!isTyping) this.root.querySelector(".safe")?.focus({ preventScroll: true });
  }

  decide(question, decisions) {
    if (this.thread.interrupt?.value.question !== question)
      return toast("This has been answered already.");
    this.thread.decide(decisions);
    get("say").focus({ preventScroll: true });
  }

  card(action, allowed, preview, take, draft) {
    const isSwitch = Boolean(preview?.switch),
      isQuestion = !isSwitch && (Boolean(preview?.suggestions) || allowed.includes("respond"));
    const heading = isQuestion
      ? "A question"
      : preview?.command === undefined
        ? titleOf(action, this.modes, preview?.switch?.source)
        : "Run a command";
    const says =
      isSwitch && !preview.switch.is_subtask
        ? action.args.reason
        : isQuestion
          ? action.args.question
          : action.description;
    return h(
      "section",
      { class: `card ${isQuestion ? "question" : ""}`, "aria-label": heading },
      h("h2", {}, h("bdi", {}, heading)),
      h("p", { class: preview?.is_sandboxed === false ? "says warning" : "says" }, says),
      isSwitch
        ? this.switchParts(action, preview.switch, take)
        : isQuestion
          ? answerParts(preview, take)
          : callParts(action, preview, take, draft),
      h("p", { class: "chosen", role: "status" }),
    );
  }

  switchParts(
    action,
    { source, target, gained, risks, lost, plans, changes, condition, is_subtask: isTask },
    take,
  ) {
    const name = (slug) => this.modes.get(slug)?.name ?? slug;
    const ends = this.thread.values.approved_plan && "What the approved plan limits ends with it.";
    const more = [...changes, condition, ends].filter(Boolean).join(" ");
    const list = (title, names, kind) =>
      names.length > 0 &&
      h(
        "div",
        {},
        h("h3", {}, title),
        h(
          "ul",
          { class: "row" },
          names.map((one) =>
            h("li", kind ? { class: kind } : { "data-risk": risks[one] }, h("code", {}, one)),
          ),
        ),
      );
    const others = [...this.modes.keys()].filter(
      (slug) => slug !== target && (isTask || slug !== source),
    );
    const other = h(
      "select",
      { "aria-label": "Another mode" },
      others.map((slug) => h("option", { value: slug }, name(slug))),
    );
    const choose = () => {
      const args = { ...action.args, mode_slug: other.value };
      take(
        { type: "edit", edited_action: { name: action.name, args } },
        `${name(other.value)} instead`,
      );
    };
    const yesToAll = `Yes, and ${this.auto.name.toLowerCase()}`;
    const comments = [];
    const { path, text, context } = action.plan ?? {};
    const next = context === "plan" ? "all" : "plan";
    const isAuto = this.thread.settings.approvals === "auto";
    return [
      h(
        "div",
        { class: "columns" },
        list("Tools gained", gained),
        list("Tools lost", lost, "minus"),
      ),
      more ? h("p", { class: "faint" }, more) : null,
      plans.map((plan) =>
        h(
          "details",
          { class: "plan", open: true },
          h("summary", {}, "Handed over: ", h("bdi", {}, plan.path)),
          plan.problem ? h("p", { class: "warning" }, plan.problem) : markdown(plan.after),
        ),
      ),
      path ? planLines(text, comments) : null,
      h("div", { class: "row" }, other, button("Take this mode instead", choose)),
      !isAuto && h("p", { class: "faint" }, `${this.auto.name}: ${this.auto.sentence}`),
      h(
        "div",
        { class: "row" },
        rejectParts(isTask ? "No" : `No, stay in ${name(source)}`, take, comments),
        path ? button(CONTEXTS[next], () => take({ type: "approve", context: next }, "Yes")) : null,
        !isAuto &&
          button(yesToAll, () => take({ type: "approve", approvals: "auto" }, yesToAll), {
            title: this.auto.sentence,
          }),
        button(
          isTask ? "Start it" : `Switch to ${name(target)}`,
          () => take({ type: "approve" }, "Yes"),
          { class: "main", ...key("y") },
        ),
      ),
    ];
  }
}

// Several calls of one message: each has its own decision, and there is one for all.
class Several {
  constructor(actions, configs, decide) {
    const each = (type) => () => decide(actions.map(() => ({ type })));
    this.decisions = actions.map(() => null);
    this.send = button("Send these decisions", () => decide(this.decisions), {
      class: "main",
      disabled: true,
    });
    this.buttons = [button(`Reject all ${actions.length}`, each("reject")), this.send];
    if (configs.every((one) => one.allowed_decisions.includes("approve"))) {
      this.buttons.push(button(`Approve all ${actions.length}`, each("approve"), { class: "yes" }));
    }
  }

  show(cards) {
    this.said = cards.map((card) => card.querySelector(".chosen"));
    return [h("div", { class: "row" }, this.buttons)];
  }

  take(n, decision, said) {
    this.decisions[n] = decision;
    this.said?.[n].replaceChildren(said);
    this.send.disabled = this.decisions.includes(null);
    if (!this.send.disabled) this.send.focus();
  }
}

// A click on a line of the plan opens a box; what stands in it goes with a no.
function planLines(text, comments) {
  const lines = text.split("\n").map((line, n) => {
    const at = `line ${n + 1}`;
    const keep = () => (comments[n] = box.value.trim() && `${at}: ${line} — ${box.value}`);
    const box = h("input", { "aria-label": `Comment on ${at}`, oninput: keep, hidden: true });
    const open = () => ((box.hidden = false), box.focus());
    return h("li", {}, button(line || "\u00a0", open, { class: "quiet" }), box);
  });
  return h("details", {}, h("summary", {}, "Comment on its lines"), h("ol", {}, lines));
}

function rejectParts(text, take, comments = []) {
  const why = h("input", {
    "aria-label": "Why not (it is told)",
    placeholder: "Why not? (optional)",
  });
  const no = () => {
    const message = [why.value.trim(), ...comments].filter(Boolean).join("\n");
    take({ type: "reject", ...(message ? { message } : {}) }, text);
  };
  return [button(text, no, { class: "safe", ...key("n") }), onEnter(why, no)];
}

function callParts(action, preview, take, draft) {
  const { change, command, is_sandboxed: isSandboxed, does, risk, server, host } = preview ?? {};
  const tag = (kind, ...text) => h("span", { class: `tag ${kind}` }, text);
  const tags = [
    isSandboxed === true ? tag("good", "in the sandbox") : null,
    server ? tag("bad", "calls the MCP server ", h("bdi", {}, server)) : null,
    host ? tag("bad", "reaches ", h("bdi", {}, host)) : null,
  ].filter(Boolean);
  if (!tags.length && risk === "high") tags.push(tag("bad", does));
  const place = h("div", {}),
    open = () => place.firstChild ?? editCall(place, action, preview, take, draft);
  const edit = () => {
    open();
    place.querySelector("input, textarea, select")?.focus();
  };
  if (draft.args) open();
  return [
    tags.length ? h("p", { class: "row" }, tags) : null,
    command === undefined
      ? null
      : h("pre", { class: "command", tabindex: 0, "aria-label": "Command" }, command),
    change ? changeView(change) : null,
    argumentsView(action.args, ...(preview?.shows ?? [])),
    place,
    "remember" in action ? alwaysParts(action, take) : null,
    h(
      "div",
      { class: "row decide" },
      rejectParts("Reject", take),
      button("Edit", edit, key("e")),
      button("Approve", () => take({ type: "approve" }, "Approve"), {
        class: "main yes",
        ...key("y"),
      }),
    ),
  ];
}

function alwaysParts(action, take) {
  const pattern = h("input", { "aria-label": "Pattern", value: action.pattern });
  return h(
    "details",
    { class: "always yes" },
    h("summary", {}, "Always in this thread..."),
    h(
      "p",
      {},
      button("Always exactly this", () =>
        take({ type: "approve", remember: true }, "Approve, always"),
      ),
      " ",
      h("code", {}, action.remember),
    ),
    "pattern" in action
      ? h(
          "p",
          { class: "row" },
          pattern,
          button("Always what matches", () =>
            take({ type: "approve", remember: pattern.value }, `Approve, always ${pattern.value}`),
          ),
        )
      : null,
  );
}

// The arguments as the person has edited them, in this tab; undefined where they have not.
function draftOf(key, question) {
  const kept = JSON.parse(sessionStorage.getItem(key));
  const keep = (args) =>
    sessionStorage.setItem(key, JSON.stringify({ question, args: (draft.args = args) }));
  const draft = { args: kept?.question === question ? kept.args : undefined, keep };
  return draft;
}

// While it is open its button is the only yes: a decision is taken back, styles hide the others.
function editCall(place, action, preview, take, draft) {
  const form = argumentsForm(preview?.arguments ?? {}, draft.args ?? action.args);
  const problem = h("p", { class: "warning", role: "alert" });
  const keep = () => {
    try {
      draft.keep(form.read());
    } catch {
      /* half of a JSON, or more than the browser keeps */
    }
  };
  const run = button(
    "Run it like this",
    () => {
      try {
        const args = form.read();
        place.replaceChildren();
        take({ type: "edit", edited_action: { name: action.name, args } }, "Approve, edited");
      } catch (error) {
        problem.textContent = `This is not JSON: ${error.message}`;
      }
    },
    { class: "main" },
  );
  // A click removes an item.
  ["input", "click"].forEach((kind) => form.node.addEventListener(kind, keep));
  const drop = button("Drop the edit", () => {
    draft.keep();
    place.replaceChildren();
  });
  place.append(form.node, problem, h("div", { class: "row" }, run, drop));
  take(null, "");
}

function answerParts(preview, take) {
  const respond = (text) =>
    text.trim() && take({ type: "respond", message: text }, `Answer: ${text}`);
  const answer = h("textarea", {
    class: "safe",
    rows: 2,
    "aria-label": "Your answer",
    placeholder: "Your answer",
  });
  onEnter(answer, () => respond(answer.value));
  return [
    h(
      "div",
      { class: "row suggestions" },
      (preview?.suggestions ?? []).map(({ label }) => button(label, () => respond(label))),
    ),
    h(
      "div",
      { class: "row" },
      answer,
      button("Answer", () => respond(answer.value), { class: "main" }),
      button("Do not answer", () => take({ type: "reject" }, "No answer")),
    ),
  ];
}
