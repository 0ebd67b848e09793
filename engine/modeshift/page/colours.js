// The colours of a language, line by line: comments, strings, numbers, words. Text is only split.
import { h } from "/app/dom.js";

const SLASHES = "js mjs cjs ts tsx jsx java c h cc cpp hpp cs go rs swift kt scala php css scss";
const HASHES = "py pyi sh bash zsh rb yaml yml toml ini cfg conf pl r mk dockerfile makefile tf";
const DASHES = "sql lua hs elm";
const STRING = /"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|`(?:\\.|[^`\\])*`?/;
const NUMBER = /\b(?:0[xob][\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b/;
const WORDS =
  "and as assert async await bool break case catch char class const continue def default del do " +
  "elif else enum except export extends false finally float fn for foreach from func function if " +
  "impl import in int interface is lambda let long match mod module mut namespace new nil none " +
  "not null nonlocal or package pass private protected pub public raise return self static " +
  "string struct super switch then this throw trait true try type typeof undefined union unless " +
  "until use using var void where while with yield select insert update delete create table set " +
  "into values order group by begin end echo export local fi done esac";
const WORD = new RegExp(String.raw`\b(?:${WORDS.replaceAll(" ", "|")})\b`);
const LANGUAGES = [
  [SLASHES, /\/\/.*|\/\*.*?(?:\*\/|$)|^\s*\*(?:\s.*|\/)?$/],
  [HASHES, /(?<![^\s])#.*/],
  [DASHES, /--.*/],
  ["json jsonc", /(?!)/],
].map(([endings, comment]) => [
  new Set(endings.split(" ")),
  new RegExp(
    `(?<c>${comment.source})|(?<s>${STRING.source})|(?<m>${NUMBER.source})|(?<k>${WORD.source})`,
    "gi",
  ),
]);
const LONGEST = 2000; // characters of a line that is coloured

// What colours a line of the file: a function of its text, to nodes.
export function coloursOf(path) {
  const ending = path.toLowerCase().split(/[./]/).at(-1);
  const language = LANGUAGES.find(([endings]) => endings.has(ending))?.[1];
  return (line) => (language && line.length <= LONGEST ? colour(line, language) : [line]);
}

function colour(line, language) {
  const parts = [];
  let at = 0;
  for (const match of line.matchAll(language)) {
    const kind = Object.entries(match.groups).find(([, text]) => text !== undefined)[0];
    parts.push(line.slice(at, match.index), h("span", { class: kind }, match[0]));
    at = match.index + match[0].length;
  }
  return [...parts, line.slice(at)];
}
