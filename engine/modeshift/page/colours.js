// The colours of a language, line by line: comments, strings, numbers, words. Text is only split.
import { h } from "/app/dom.js";

const SLASHES = new Set("js mjs ts tsx jsx java c h cc cpp cs go rs swift kt php css".split(" "));
const HASHES = new Set("py sh rb yaml yml toml ini cfg r mk dockerfile makefile".split(" "));
const WORDS =
  "and as async await break case catch class const continue def do elif else except export false " +
  "finally fn for from func function if import in is lambda let match new nil none not null or " +
  "pass private public raise return self static struct switch this throw true try type var while " +
  "with yield";
const OTHERS =
  /(?<s>"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|`[^`]*`?)|(?<m>\b\d[\w.]*)/.source +
  String.raw`|(?<k>\b(?:${WORDS.replaceAll(" ", "|")})\b)`;
const compile = (comment) => new RegExp(`(?<c>${comment})|${OTHERS}`, "gi");
const [SLASHED, HASHED] = [String.raw`\/\/.*|\/\*.*`, String.raw`(?<!\S)#.*`].map(compile);
const LONGEST = 2000; // characters of a line that is coloured

// What colours a line of the file: a function of its text, to nodes.
export function coloursOf(path) {
  const ending = path.toLowerCase().split(/[./]/).at(-1);
  const language = SLASHES.has(ending) ? SLASHED : HASHES.has(ending) && HASHED;
  return (line) => (language && line.length <= LONGEST ? colour(line, language) : line);
}

function colour(line, language) {
  const parts = [];
  let at = 0;
  for (const match of line.matchAll(language)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    parts.push(line.slice(at, match.index), h("span", { class: kind }, match[0]));
    at = match.index + match[0].length;
  }
  return [...parts, line.slice(at)];
}
