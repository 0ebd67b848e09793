// Puts the page together: one thread, and the views of it.
import { attempt, call } from "/app/api.js";
import { announce, button, confirm, get, h, onEnter, toast } from "/app/dom.js";
import { Details } from "/app/details.js";
import { Header } from "/app/header.js";
import { Messages } from "/app/messages.js";
import { Question } from "/app/question.js";
import { Thread, markOf } from "/app/thread.js";
import { Threads } from "/app/threads.js";
import { PHASES, describeAllowed, examplesFor, titleOf } from "/app/words.js";

const [listed, chart] = await Promise.all([call("GET", "/modes"), call("GET", "/modeshift/chart")]);
const modes = new Map(listed.map((one) => [one.slug, one]));
const first = listed.find((one) => one.is_default) ?? listed[0];
const thread = new Thread({
  mode: first?.slug,
  approvals: chart.approvals.find((one) => one.is_default).value,
  limit: null,
});

const threads = new Threads(get("threads"), {
  hasFiles: chart.has_files,
  onopen: (id) => (location.hash = id ?? ""),
  onchange: healThread,
});
threads.now = () => (thread.isRunning ? "busy" : thread.interrupt ? "interrupted" : "idle");
const header = new Header(get("header"), { modes, ...chart, thread, onset: set });
const messages = new Messages(get("messages"), modes, editAndRun, undo);
const question = new Question(get("question"), modes, thread, chart.approvals);
const details = new Details(get("details"), { modes, chart, thread, onset: set });
const main = get("main");

const say = h("textarea", { id: "say", rows: 1, "aria-label": "Message", placeholder: "Message" });
const send = h("button", { type: "submit", class: "main" }, "Send");
const stop = button("Stop", () => attempt(() => thread.cancel()), {
  class: "danger",
  hidden: true,
  "data-key": "Esc",
  "aria-keyshortcuts": "Escape",
});
const status = h("span", { class: "status" });
const goOn = button("Go on", () => thread.start({ input: null }), { class: "quiet" });
const waiting = h("div", { class: "row waiting" });
const end = button("Stop the sub-task", () => thread.start({ input: { end_subtask: true } }), {
  class: "quiet",
  hidden: true,
});
const latest = button("↓ Latest", () => scrollDown(true), { class: "quiet", hidden: true });
const allowed = h("div", { role: "status" });
const todo = h("details", { id: "todo", hidden: true });
get("composer").append(
  todo,
  allowed,
  waiting,
  h("div", { class: "row statusline" }, status, goOn, end, latest),
  h("div", { class: "row box" }, say, send, stop),
);

let setting = null; // a message waits for it: it is for the mode that was chosen before

function set(given) {
  return (setting = apply(given));
}

async function apply(given) {
  const wasWaiting = thread.interrupt !== null;
  const answer = await attempt(() => thread.set(given));
  if (answer?.begun.length)
    toast(`Holds from the next step on; ${answer.begun.join(", ")} had begun and goes on.`);
  else if (answer && wasWaiting && !answer.is_pending) toast("The question was taken back.");
  draw(); // what was refused is not what it is set to
}

get("composer").addEventListener("submit", async (event) => {
  event.preventDefault();
  await setting;
  const text = say.value.trim();
  if (!text) return;
  say.value = "";
  if (thread.id && thread.isRunning) return thread.sayLater(text);
  if (!thread.id) {
    const title = text.split("\n")[0].slice(0, 80);
    const created = await attempt(() =>
      call("POST", "/modeshift/threads", { ...thread.chosen, metadata: { title } }),
    );
    if (!created) return void (say.value = text);
    thread.open(created.thread_id);
    history.pushState(null, "", `#${created.thread_id}`);
    threads.current = thread.id;
  }
  thread.say(text);
  scrollDown(true);
  threads.refresh();
});

onEnter(say, () => get("composer").requestSubmit());
say.addEventListener("input", drawButtons);
// What Esc closes comes first: a panel, a dialog, the search.
addEventListener(
  "keydown",
  ({ key, isComposing, target }) => {
    const isElsewhere = document.querySelector("dialog, .with-threads, .with-details");
    const isForRun = key === "Escape" && !isComposing && !target.matches("[type=search]");
    if (isForRun && !isElsewhere && !stop.hidden) stop.click();
  },
  true,
);

// The end, or the beginning of what is to be decided: all of it is read on the way to the buttons.
function findLatest() {
  const end = main.scrollHeight - main.clientHeight;
  return question.shown ? Math.min(end, question.root.offsetTop - 8) : end;
}

// How far the view is above it; negative on the way to the buttons, where nothing moves under the
// mouse.
let above = 0;
main.addEventListener("scroll", () => {
  latest.hidden = (above = findLatest() - main.scrollTop) < 80;
});

function scrollDown(force) {
  if (force) above = 0;
  if (above < 80) main.scrollTop = findLatest();
}

const sized = new ResizeObserver(() => above > -8 && scrollDown(false));
[main, get("messages")].forEach((one) => sized.observe(one));

let before = {};
function draw() {
  const now = thread.settings;
  header.draw(threads.titleOf(thread.id), now);
  details.draw(now);
  messages.draw(thread);
  question.draw();
  const waits = thread.interrupt !== null && !thread.isRunning;
  if (thread.unsent && !say.value) [say.value, thread.unsent] = [thread.unsent, null];
  drawButtons();
  refill(todo, todoParts(thread.values.todos ?? []));
  todo.hidden = !todo.firstChild;
  refill(waiting, waitingParts());
  refill(allowed, thread.allowed.map(allowedPart));
  end.hidden = thread.isRunning || !thread.values.subtask;
  say.placeholder = waits ? "Decide, or say something else instead" : "Message";
  const wasStopped = thread.kept.isStopped && !thread.isRunning && !waits;
  goOn.hidden = !wasStopped || !thread.isCut;
  const where = thread.values.subtask ? ", in the sub-task" : "";
  status.textContent = waits ? `Waits for you${where}` : wasStopped ? "You stopped this run." : "";
  tellWork();
  threads.drawNow();
  refill(get("trouble"), trouble());
  refill(get("start"), thread.id ? [] : startParts(modes.get(now.mode)));
  if (before.isRunning && !thread.isRunning && !waits && !thread.problem)
    announce("The agent has answered.");
  if (before.mode && before.id === thread.id && before.mode !== now.mode)
    announce(`Now in ${modes.get(now.mode)?.name ?? now.mode} mode.`);
  if (before.isRunning !== thread.isRunning) threads.refresh();
  if (!question.shown || question.shown !== before.question) scrollDown(false);
  before = { id: thread.id, isRunning: thread.isRunning, mode: now.mode, question: question.shown };
}

const TODO = {
  __proto__: null,
  completed: ["✓", "done"],
  in_progress: ["▸", "under way"],
  pending: ["○", "to do"],
};

function todoParts(todos) {
  if (!todos.length) return [];
  const done = todos.filter(({ status }) => status === "completed").length;
  const next =
    todos.find(({ status }) => status === "in_progress") ??
    todos.find(({ status }) => status !== "completed");
  return [
    h(
      "summary",
      {},
      `Todo, ${done} of ${todos.length} done`,
      next && [": ", h("bdi", {}, next.content)],
    ),
    h("ul", { class: "todos" }, todos.map(todoItem)),
  ];
}

function todoItem({ status, content }) {
  const [mark, word] = TODO[status] ?? TODO.pending;
  return h(
    "li",
    { class: status },
    h("span", { "aria-hidden": "true" }, mark),
    h("span", { class: "unseen" }, `${word}: `),
    " ",
    h("bdi", {}, content),
  );
}

const startParts = (mode) => [
  h("p", {}, "What shall we do? The mode says what the agent may do."),
  (mode ? examplesFor(mode) : []).map((text) => button(text, () => fillIn(text))),
];

function fillIn(text) {
  say.value = text;
  say.focus();
  drawButtons();
}

async function editAndRun(message) {
  const isBusy = () => thread.isRunning || thread.interrupt || thread.values.subtask;
  if (isBusy()) return toast("First end the run, question or sub-task.");
  const text = h("textarea", { rows: 5, "aria-label": "Message", value: message.content });
  const files = chart.has_files ? " Files stay as they are." : "";
  const note = `What came after it is left out.${files}`;
  const parts = [text, h("p", { class: "faint" }, note)];
  const isSaid = await confirm("Edit and run again", parts, "Run again");
  if (isSaid && text.value.trim() && !isBusy())
    await attempt(() => thread.sayInstead(message, text.value.trim()));
}

async function undo({ id }) {
  const path = `/threads/${thread.id}/undo`;
  const preview = await attempt(() => call("GET", `${path}?message=${id}`));
  const { files, stays, rights, digest } = preview ?? {};
  if (!preview) return;
  const lines = [...Object.entries(files), ...stays.map((text) => ["Cannot go back:", text])];
  const text =
    "The conversation goes back to before this. " +
    `Mode: ${modes.get(rights.mode)?.name ?? rights.mode}. ` +
    `Approvals: ${chart.approvals.find((one) => one.value === rights.approvals).name}. ` +
    (chart.has_files ? "What git ignores, links and empty folders stay as they are." : "");
  const parts = [h("p", {}, text), lines.map((line) => h("p", {}, h("bdi", {}, line.join(" "))))];
  if (!(await confirm("Undo", parts, "Undo"))) return;
  if (!(await attempt(() => call("POST", path, { message: id, digest })))) return;
  thread.follow();
  if (await confirm("Undone", [], "Undo the undo", { no: "Close" })) await undo({ id: "back" });
}

// What runs, and for how long.
let work = {};
function tellWork() {
  if (!thread.isRunning) return (work = {});
  const { phase = "Starts" } = thread.values;
  const what = [PHASES[phase]?.[0] ?? phase, findCall(thread)]
    .filter(Boolean)
    .join(": ");
  if (work.what !== what) work = { what, since: work.what ? Date.now() : thread.since };
  const seconds = Math.max(0, Math.floor((Date.now() - work.since) / 1000));
  const minutes = Math.floor(seconds / 60);
  const where = thread.values.subtask ? "In the sub-task: " : "";
  status.textContent = `${where}${what} · ${minutes ? `${minutes} min ` : ""}${seconds % 60} s`;
}
setInterval(tellWork, 1000);

function findCall({ values }) {
  const messages = values.messages ?? [];
  const results = new Set(messages.map((message) => message.tool_call_id));
  const calls = messages.findLast(({ type }) => type === "ai")?.tool_calls ?? [];
  const call = values.phase === "acting" && calls.find(({ id }) => !results.has(id));
  return call ? titleOf(call, modes) : "";
}

function drawButtons() {
  send.hidden = thread.isRunning && !say.value.trim();
  send.textContent = thread.isRunning ? "Send afterwards" : "Send";
  stop.hidden = !thread.isRunning;
  stop.disabled = !thread.run;
}

// Drawn anew, a button would have gone between a mouse's down and up.
function refill(node, parts) {
  const shown = h("div", {}, parts);
  if (shown.textContent !== node.textContent) node.replaceChildren(...shown.childNodes);
}

// A message that was sent while a run goes on: it closes no question, and answers none.
function waitingParts() {
  const text = thread.kept.waiting;
  if (!text) return [];
  const label = thread.isRunning
    ? "Waits until the run has ended: "
    : thread.interrupt
      ? "Waits until you have decided: "
      : "Not sent yet: ";
  const takeBack = () => {
    fillIn([text, say.value].filter(Boolean).join("\n"));
    thread.keep({ waiting: "" });
  };
  return [
    h("p", {}, label, h("bdi", {}, text)),
    button("Take back", takeBack, { class: "quiet" }),
    !thread.interrupt &&
      button(
        thread.isRunning ? "Stop and send now" : "Send now",
        () => attempt(() => thread.sendNow()),
        { class: "quiet" },
      ),
  ];
}

function allowedPart(approval) {
  const takeBack = button("Take back", () => set({ forget: [approval.id] }), { class: "quiet" });
  const text = describeAllowed(approval, modes);
  return h("p", { class: "allowed" }, "Runs unasked from now on: ", h("bdi", {}, text), takeBack);
}

function trouble() {
  if (thread.isLost)
    return [
      h(
        "p",
        {},
        "The server does not answer. Reconnecting; nothing is lost: " +
          "threads and questions are kept on disk.",
      ),
    ];
  const isCut = thread.isCut && !thread.isRunning && !thread.kept.isStopped;
  if (!thread.problem && !isCut) return [];
  const close = button("Close", () => {
    thread.problem = null;
    thread.isCut = false;
    draw();
  });
  return [
    h("p", {}, thread.problem ?? "The last run was interrupted."),
    isCut && button("Go on", () => thread.start({ input: null })),
    close,
  ];
}

// What somebody else did before this page was listening.
function healThread(found) {
  const listed = found.find((one) => one.thread_id === thread.id);
  if (
    listed &&
    thread.isLoaded &&
    !thread.isRunning &&
    !thread.isLost &&
    markOf(listed) !== thread.mark
  )
    thread.follow();
  header.draw(threads.titleOf(thread.id), thread.settings);
}

function route() {
  const id = /^#([0-9a-f-]{36})$/.exec(location.hash)?.[1] ?? null;
  document.body.classList.remove("with-threads");
  threads.current = id;
  above = 0;
  if (id !== thread.id || !id) thread.open(id);
  threads.refresh();
  if (!id) say.focus();
}

thread.addEventListener("change", draw);
addEventListener("hashchange", route);
route();
draw();
document.documentElement.dataset.ready = "";
