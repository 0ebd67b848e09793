// A thread as the server has it. Its state is the truth; what streams is a preview of the next one.
import { Unreachable, call, stream } from "/app/api.js";
import { applyUpdate, joinMessage, keepEqual } from "/app/state.js";

const MODES = ["messages-tuple", "updates", "custom"];
const MOST_OUTPUT = 100_000;
export const markOf = ({ updated_at: when, status }) => `${when} ${status}`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Thread extends EventTarget {
  constructor() {
    super();
    this.id = null;
    this.clear();
  }

  clear() {
    this.values = {};
    this.interrupt = null;
    this.previews = [];
    this.run = null;
    this.isSending = false;
    this.live = new Map(); // messages as they stream, by id
    this.output = new Map(); // what a tool prints while it runs, by call id
    this.isLost = false;
    this.isLoaded = false;
    this.problem = null;
    this.isCut = false; // the last run has not come to its end
    this.sent = null; // a message, until the server has it
    this.unsent = null;
    this.next = {}; // what the host has set, and the run has not taken in yet
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
    for (;;) {
      try {
        if (events) await this.take(events(signal));
        this.mark = await this.findMark(signal);
        await this.load(signal);
        const [run] = await this.findRuns(signal);
        events = run ? (to) => this.join(run.run_id, to) : null;
        if (!run) await this.wait(signal);
      } catch (error) {
        if (signal.aborted) return;
        events = null;
        [this.unsent, this.sent] = [this.sent ?? this.unsent, null];
        if (error instanceof Unreachable) {
          this.isLost = true;
          this.run = null;
          this.isSending = false;
          this.changed();
          await pause(1000);
        } else {
          if (error.status === 404 && (await this.find(signal))) continue;
          this.fail(error);
          if (error.status === 404) return;
          if (error.status !== 409) await pause(1000);
        }
        if (signal.aborted) return;
      }
    }
  }

  fail(error) {
    this.problem = error.message;
    this.isSending = false;
    this.run = null;
    this.changed();
  }

  async load(signal) {
    const state = await call("GET", `/threads/${this.id}/state`, undefined, { signal });
    const interrupt = state.interrupts[0] ?? null;
    if (interrupt && interrupt.value.question !== this.interrupt?.value.question) {
      const found = await call("GET", `/threads/${this.id}/question`, undefined, { signal }).catch((error) => {
        if (!(error.status >= 500)) throw error;
        return {}; // the card then shows the arguments as they are
      });
      this.previews = found.question === interrupt.value.question ? found.previews : [];
    }
    const host = await call("GET", `/threads/${this.id}/mode`, undefined, { signal });
    if (signal.aborted) return;
    this.values = keepEqual(this.values, Array.isArray(state.values) ? {} : state.values);
    this.next = host.is_pending || !this.values.mode ? host : {};
    this.interrupt = interrupt;
    this.isCut = state.next.length > 0 && !interrupt;
    this.run = null;
    this.isSending = false;
    this.isLost = false;
    this.isLoaded = true;
    this.live.clear();
    this.output.clear();
    this.changed();
  }

  // Changes with whatever is done in the thread.
  async findMark(signal) {
    const select = ["thread_id", "updated_at", "status"];
    const [found] = await call("POST", "/threads/search", { ids: [this.id], select }, { signal });
    return found ? markOf(found) : "";
  }

  // A server that was killed may have lost its list; what was said is kept elsewhere.
  async find(signal) {
    try {
      await call("POST", "/threads", { thread_id: this.id, if_exists: "do_nothing" }, { signal });
      const state = await call("GET", `/threads/${this.id}/state`, undefined, { signal });
      if (state.values?.messages?.length) return true;
      await call("DELETE", `/threads/${this.id}`, undefined, { signal });
    } catch { /* another's, or gone again */ }
    return false;
  }

  async findRuns(signal) {
    for (const status of ["pending", "running"]) {
      const runs = await call("GET", `/threads/${this.id}/runs?status=${status}&limit=1`, undefined, { signal });
      if (runs.length) return runs;
    }
    return [];
  }

  // From its beginning, so that a reload shows what has streamed.
  join(run, signal) {
    this.run = run;
    this.changed();
    return stream("GET", `/threads/${this.id}/runs/${run}/stream`, undefined, { signal, headers: { "last-event-id": "-" } });
  }

  // Until somebody else does something: another tab, a program.
  async wait(signal) {
    const both = new AbortController();
    const end = () => both.abort();
    signal.addEventListener("abort", end);
    document.addEventListener("visibilitychange", end);
    // What was done before the server listened for this page rings no bell.
    const onopen = () => this.findMark(both.signal).then((mark) => mark === this.mark || end(), end);
    try {
      const path = `/threads/${this.id}/stream?stream_modes=run_modes,state_update`;
      for await (const _ of stream("GET", path, undefined, { signal: both.signal, onopen })) break;
    } catch (error) {
      if (signal.aborted || !both.signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", end);
      document.removeEventListener("visibilitychange", end);
    }
    // A browser has six connections for all tabs: one that is not seen holds none.
    while (document.hidden && !signal.aborted) {
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
    }
  }

  start(run) {
    this.isSending = true;
    this.problem = null;
    this.changed();
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

  say(text) {
    const message = { type: "human", content: text, id: crypto.randomUUID() };
    this.values = { ...this.values, messages: [...(this.values.messages ?? []), message] };
    this.interrupt = null;
    this.sent = text;
    this.start({ input: { messages: [message] } });
  }

  decide(decisions) {
    const { id, value } = this.interrupt;
    this.interrupt = null;
    this.start({ command: { resume: { [id]: { decisions, question: value.question } } } });
  }

  async cancel() {
    if (this.run) await call("POST", `/threads/${this.id}/runs/${this.run}/cancel?wait=false`, {});
  }

  // Mode, limit or approvals; a run that goes on takes them in at its next step.
  async set(settings) {
    const answer = await call("PATCH", `/threads/${this.id}/mode`, settings);
    if (answer.is_pending) {
      this.next = answer;
      this.changed();
    } else if (!this.isRunning) this.follow();
    return answer;
  }

  async take(events) {
    for await (const [name, data] of events) {
      this.isSending = false;
      this.sent = null;
      if (name === "metadata" && data.run_id) this.run = data.run_id;
      else if (name === "messages") this.takePiece(...data);
      else if (name === "updates") this.takeUpdate(data);
      else if (name === "values") this.values = keepEqual(this.values, data);
      else if (name === "custom" && data?.type === "tool_output") {
        const text = (this.output.get(data.tool_call_id) ?? "") + data.text;
        this.output.set(data.tool_call_id, text.slice(-MOST_OUTPUT));
      } else if (name === "error") this.problem = data.message ?? data.error;
      this.changed();
    }
  }

  takePiece(piece) {
    if (piece.type !== "AIMessageChunk") return;
    this.live.set(piece.id, joinMessage(this.live.get(piece.id), piece));
  }

  takeUpdate(update) {
    for (const [node, change] of Object.entries(update)) {
      if (node === "__interrupt__") continue; // the state has it, with its preview
      for (const one of [change].flat()) {
        if (!one) continue;
        this.values = applyUpdate(this.values, one);
        if (one.mode) this.next = {};
      }
      for (const message of this.values.messages ?? []) this.live.delete(message.id);
    }
  }
}
