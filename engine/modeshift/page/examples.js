// What one could say first: three examples that fit the mode's tools and its model.

// A tool, what the offline model understands, what any other does.
const EXAMPLES = [
  ["write_file", "write notes.txt: hello", "Write a README for this project"],
  ["execute_command", "run ls", "Run the tests, and say what fails and why"],
  ["list_files", "list", "What is in this project, and where do I begin?"],
  ["search_files", "search TODO", "Find what is still to be done in the code"],
  ["update_todo_list", "todo: look; plan; change", "Make a todo list for adding a licence"],
  ["ask_followup_question", "ask: What is it for?", "Ask me what you need to know for a plan"],
];
const ALWAYS = [null, "hello", "What can you do in this mode?"];

export function examplesFor({ tools, model }) {
  const fitting = EXAMPLES.filter(([tool]) => tools.includes(tool)).slice(0, 2);
  return [...fitting, ALWAYS].map(([, offline, real]) => (model === "offline" ? offline : real));
}
