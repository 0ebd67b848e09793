// What calls and results say to a person; what is meant for the model is left out.
import { textOf } from "/app/state.js";

const MARKS = /<data-([0-9a-f]{12}) source=[^\n]*>\n([^]*?)\n<\/data-\1>/g;
const MOST = 160;

// Of each phase, what one is told while it lasts, and what it is.
export const PHASES = {
  __proto__: null,
  idle: ["Starts", "It waits for a message."],
  thinking: ["Thinking", "The model writes its next message."],
  reviewing: ["Thinking", "The calls are judged; you are asked about some."],
  acting: ["Runs tools", "The calls are run."],
  switching: ["Switches the mode", "The mode changes."],
  compacting: ["Summarizes", "A summary takes the place of the conversation."],
  returning: ["Ends the sub-task", "The result goes to what began it."],
};

const oneLine = (value, text = typeof value === "string" ? value : JSON.stringify(value)) =>
  // a list, perhaps
  (text.length > MOST ? `${text.slice(0, MOST)}...` : text).replace(/\s+/g, " ").trim();

export function titleOf({ name, args }, modes, source = null) {
  const mode = modes.get(args?.mode_slug)?.name ?? args?.mode_slug;
  if (name === "switch_mode")
    return `Switch ${source ? `from ${modes.get(source)?.name ?? source} ` : ""}to ${mode} mode`;
  if (name === "new_task") return `Sub-task in ${mode} mode: ${oneLine(args.message ?? "")}`;
  if (name === "ask_followup_question") return oneLine(args.question ?? "A question");
  if (name === "update_todo_list") return "Update the todo list";
  if (name === "attempt_completion") return "Done";
  if (name === "execute_command") return `Run ${oneLine(args.command ?? "")}`;
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  const words = server ? `${server}: ${tool}` : name.replace(/_file$/, "").replaceAll("_", " ");
  const subject = [...modes.values()].find(({ subjects }) => Object.hasOwn(subjects, name))
    ?.subjects[name];
  const pairs = Object.entries(args ?? {}).filter(
    ([key, value]) => typeof value === "string" && key !== "content",
  );
  const values = subject
    ? subject.map((key) => oneLine(args?.[key] ?? ""))
    : pairs.map(([, value]) => value);
  return oneLine(
    [server ? words : words.charAt(0).toUpperCase() + words.slice(1), ...values].join(" "),
  );
}

// What runs unasked: the tool, the call or the pattern, the mode.
export const describeAllowed = ({ mode, tool, pattern, exact }, modes) =>
  `${tool}, ${exact ? "exactly" : "what matches"} “${oneLine(pattern)}”, ` +
  `in ${modes.get(mode)?.name ?? mode} mode`;

// How a call ended: { kind, text }, and what the person changed; as messages/repair.py marks it.
export function resultOf(message) {
  const full = textOf(message),
    { shown, changed_to: changed = null, is_rejected } = message.artifact ?? {};
  const text = (shown ?? (changed ? full.slice(full.indexOf("\n") + 1) : full)).replace(
    MARKS,
    "$2",
  );
  const ended = message.status === "error" ? "failed" : "done";
  return { kind: is_rejected ? "rejected" : ended, changed, text };
}

// Of a tool: what one says to the offline model, and to any other.
const EXAMPLES = [
  ["write_file", "write notes.txt: hello", "Write a README for this project"],
  ["execute_command", "run ls", "Run the tests and say what fails"],
  ["list_files", "list", "What is in this project?"],
  ["search_files", "search TODO", "Find what is still to do in the code"],
];
const ALWAYS = [null, "hello", "What can you do in this mode?"];

export function examplesFor({ tools, model }) {
  const fitting = EXAMPLES.filter(([tool]) => tools.includes(tool)).slice(0, 2);
  return [...fitting, ALWAYS].map(([, offline, real]) => (model === "offline" ? offline : real));
}
