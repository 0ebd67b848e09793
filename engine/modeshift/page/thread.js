// A thread as the server has it. Its state is the truth; what streams is a preview of the next one.
import { Unreachable, call, stream } from "/app/api.js";
import { applyUpdate, joinMessage, keepEqual } from "/app/state.js";

const MODES = ["messages-tuple", "updates", "custom"];
const MOST_OUTPUT = 100_000;
export const markOf = ({ updated_at: when, status }) => `${when} ${status}`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const load = (id) => JSON.parse(sessionStorage.getItem(`modeshift-kept-${id}`));

export class Thread extends EventTarget {
  // With what holds where nothing is set: mode, limit, approvals.
  constructor(defaults) {
    super();
    this.defaults = defaults;
    this.id = null;
    this.clear();
  }

  clear() {
    this.values = {};
    this.interrupt = null;
    this.previews = [];
    this.run = null;
    this.since = Date.now(); // when the run has begun
    this.isSending = false;
    this.live = new Map(); // messages as they stream, by id
    this.output = new Map(); // what a tool prints while it runs, by call id
    this.isLost = false; // the server does not answer
    this.isLoaded = false;
    this.problem = null;
    this.isCut = false; // the last run has not come to its end
    this.sent = null; // a message, until the server has it
    this.unsent = null; // the text of one that the server did not get
    this.kept = { waiting: "", isStopped: false, ...load(this.id) };
    this.isHurried = false; // what waits is sent although the run was stopped
    this.chosen = {}; // for a thread that is not there yet
    this.allowed = []; // what the last "always" of this tab allows
    // is_pending: the run has not taken them in yet
    this.settings = { ...this.defaults, remembered: [] };
  }

  get isRunning() {
    return this.isSending || this.run !== null;
  }

  open(id) {
    this.stop?.abort();
    this.id = id;
    this.clear();
    this.changed();
    if (id) this.follow();
  }

  // Views render once a frame, however much comes in.
  changed() {
    if (this.frame) return;
    const render = () => {
      this.frame = null;
      this.dispatchEvent(new Event("change"));
    };
    this.frame = document.hidden ? setTimeout(render, 100) : requestAnimationFrame(render);
  }

  async follow(first = null) {
    this.stop?.abort();
    const { signal } = (this.stop = new AbortController());
    let events = first;
    while (!signal.aborted) {
      try {
        if (events) await this.take(events(signal));
        this.mark = await this.findMark(signal);
        // Before the state: a card that is shown while its run ends would be taken away again.
        const [run] = await this.findRuns(signal);
        if (run) this.since = Date.parse(run.created_at);
        await this.load(signal, run?.run_id);
        events = run ? (to) => this.join(run.run_id, to) : null;
        if (!run) await this.wait(signal);
      } catch (error) {
        if (signal.aborted) return;
        events = null;
        if (!(await this.recover(error, signal))) return;
      }
    }
  }

  // Whether there is something left to follow.
  async recover(error, signal) {
    if (this.sent) {
      const { id, content } = this.sent;
      const messages = this.values.messages.filter((message) => message.id !== id);
      [this.values, this.unsent, this.sent] = [{ ...this.values, messages }, content, null];
    }
    this.isLost = error instanceof Unreachable;
    if (!this.isLost) this.problem = error.message;
    this.stopped();
    if (error.status !== 409) await pause(1000);
    return error.status !== 404;
  }

  stopped(run = null) {
    this.run = run;
    this.isSending = false;
    this.changed();
  }

  get(what, signal) {
    return call("GET", `/threads/${this.id}/${what}`, undefined, { signal });
  }

  async load(signal, run = null) {
    const [state, host] = await Promise.all([this.get("state", signal), this.get("mode", signal)]);
    const interrupt = state.interrupts[0] ?? null;
    if (interrupt && interrupt.value.question !== this.interrupt?.value.question) {
      const found = await this.get("question", signal).catch((error) => {
        if (!(error.status >= 500)) throw error;
        return {}; // the card then shows the arguments as they are
      });
      this.previews = found.question === interrupt.value.question ? found.previews : [];
    }
    if (signal.aborted) return;
    this.values = keepEqual(this.values, Array.isArray(state.values) ? {} : state.values);
    this.settings = host;
    this.interrupt = interrupt;
    // By the phase: no node is next where a step was done and its checkpoint is missing.
    this.isCut = !interrupt && (state.next.length > 0 || (state.values.phase ?? "idle") !== "idle");
    this.isLost = false;
    this.isLoaded = true;
    this.live.clear();
    this.output.clear();
    this.stopped(run);
    if (!run) this.sendWaiting();
  }

  // By the state, which says whether the run has ended in a question: that waits for a person.
  sendWaiting() {
    const isEnded = !this.interrupt && !this.problem && !this.isCut && !this.kept.isStopped;
    const text = this.kept.waiting;
    if (text && (isEnded || (this.isHurried && !this.interrupt))) this.say(text, { waiting: "" });
    this.isHurried = false;
  }

  // In this tab, also when it is loaded again.
  keep(changes) {
    this.kept = { ...this.kept, ...changes };
    sessionStorage.setItem(`modeshift-kept-${this.id}`, JSON.stringify(this.kept));
    this.changed();
  }

  sayLater(text) {
    this.keep({ waiting: [this.kept.waiting, text].filter(Boolean).join("\n") });
  }

  // Changes with whatever is done in the thread.
  async findMark(signal) {
    const select = ["thread_id", "updated_at", "status"];
    const [found] = await call("POST", "/threads/search", { ids: [this.id], select }, { signal });
    return found ? markOf(found) : "";
  }

  async findRuns(signal) {
    for (const status of ["pending", "running"]) {
      const runs = await this.get(`runs?status=${status}&limit=1`, signal);
      if (runs.length) return runs;
    }
    return [];
  }

  // From its beginning, so that a reload shows what has streamed.
  join(run, signal) {
    this.run = run;
    this.changed();
    return stream("GET", `/threads/${this.id}/runs/${run}/stream`, undefined, {
      signal,
      headers: { "last-event-id": "-" },
    });
  }

  // Until somebody else does something: another tab, a program.
  async wait(signal) {
    const bell = new AbortController(),
      end = () => bell.abort();
    const both = AbortSignal.any([signal, bell.signal]);
    document.addEventListener("visibilitychange", end, { signal: both });
    // What was done before the server listened for this page rings no bell.
    const onopen = () => this.findMark(both).then((mark) => mark === this.mark || end(), end);
    try {
      const path = `/threads/${this.id}/stream?stream_modes=run_modes,state_update`;
      for await (const _ of stream("GET", path, undefined, { signal: both, onopen })) break;
    } catch (error) {
      if (!bell.signal.aborted) throw error;
    } finally {
      end();
    }
    // A browser has six connections for all tabs: one that is not seen holds none.
    while (document.hidden && !signal.aborted) {
      await new Promise((resolve) =>
        document.addEventListener("visibilitychange", resolve, { once: true }),
      );
    }
  }

  start(run) {
    this.isSending = true;
    this.since = Date.now();
    this.problem = null;
    this.keep({ isStopped: false });
    const body = {
      assistant_id: "agent",
      stream_mode: MODES,
      stream_resumable: true,
      on_disconnect: "continue",
      multitask_strategy: "reject",
      ...run,
    };
    this.follow((signal) => stream("POST", `/threads/${this.id}/runs/stream`, body, { signal }));
  }

  // In its place; what came after it is another branch.
  async sayInstead({ id }, text) {
    const checkpoint_id = await this.findBefore(id);
    const messages = this.values.messages ?? [];
    const kept = messages.slice(
      0,
      messages.findIndex((message) => message.id === id),
    );
    this.values = { ...this.values, messages: kept };
    this.say(text, null, { checkpoint_id });
  }

  // The newest checkpoint of this branch without the message.
  async findBefore(id) {
    const has = ({ messages, parents = [] }) =>
      messages?.some((message) => message.id === id) || parents.some(has);
    for (let before = "", sought = null; ;) {
      const page = await this.get(`history?limit=10${before && `&before=${before}`}`);
      for (const { checkpoint, parent_checkpoint: parent, values } of page) {
        before = checkpoint.checkpoint_id;
        if (sought && sought !== before) continue;
        if (!has(values)) return before;
        sought = parent?.checkpoint_id;
      }
      if (!page.length) throw new Error("the server has nothing from before this message");
    }
  }

  say(text, kept = null, from = {}) {
    this.allowed = [];
    if (kept) this.keep(kept);
    const message = { type: "human", content: text, id: crypto.randomUUID() };
    this.values = { ...this.values, messages: [...(this.values.messages ?? []), message] };
    this.interrupt = null;
    this.sent = message;
    this.start({ input: { messages: [message] }, ...from });
  }

  decide(decisions) {
    const { id, value } = this.interrupt;
    this.interrupt = null;
    this.start({ command: { resume: { [id]: { decisions, question: value.question } } } });
  }

  async cancel() {
    if (!this.run) return;
    this.keep({ isStopped: true });
    await call("POST", `/threads/${this.id}/runs/${this.run}/cancel`, {});
  }

  sendNow() {
    this.isHurried = true;
    return this.isRunning ? this.cancel() : this.sendWaiting();
  }

  // Mode, limit or approvals; a run that goes on takes them in at its next step.
  async set(settings) {
    if (!this.id) {
      Object.assign(this.chosen, settings);
      Object.assign(this.settings, settings);
      return null;
    }
    const answer = await call("PATCH", `/threads/${this.id}/mode`, settings);
    this.settings = answer;
    this.allowed = this.allowed.filter(({ id }) => answer.remembered.some((one) => one.id === id));
    this.changed();
    if (!answer.is_pending && !this.isRunning) this.follow();
    return answer;
  }

  async take(events) {
    for await (const [name, data] of events) {
      this.isSending = false;
      this.sent = null;
      if (name === "metadata" && data.run_id) this.run = data.run_id;
      else if (name === "messages") this.takePiece(...data);
      else if (name === "updates") this.takeUpdate(data);
      else if (name === "values")
        this.takeValues(keepEqual(this.values, data), data); // of another client's run
      else if (name === "custom" && data?.type === "tool_output") {
        const text = (this.output.get(data.tool_call_id) ?? "") + data.text;
        this.output.set(data.tool_call_id, text.slice(-MOST_OUTPUT));
      } else if (name === "error" && !this.kept.isStopped)
        this.problem = data.message ?? data.error;
      this.changed();
    }
  }

  takePiece(piece) {
    if (piece.type !== "AIMessageChunk") return;
    this.live.set(piece.id, joinMessage(this.live.get(piece.id), piece));
  }

  takeValues(values, changed) {
    this.values = values;
    const known = new Set(this.settings.remembered.map(({ id }) => id));
    const more = (changed.remembered ?? []).filter(({ id }) => !known.has(id));
    if (more.length) {
      this.allowed = more;
      this.settings = { ...this.settings, remembered: [...this.settings.remembered, ...more] };
    }
    for (const key of Object.keys(this.defaults)) {
      if (key in changed)
        this.settings = { ...this.settings, [key]: changed[key], is_pending: false };
    }
  }

  takeUpdate(update) {
    for (const [node, change] of Object.entries(update)) {
      if (node === "__interrupt__") continue; // the state has it, with its preview
      for (const one of [change].flat()) {
        if (!one) continue;
        this.takeValues(applyUpdate(this.values, one), one);
      }
      for (const message of this.values.messages ?? []) this.live.delete(message.id);
    }
  }
}
