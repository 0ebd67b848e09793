// Markdown: the server parses it into a tree of known elements, once it is in view.
import { call } from "/app/api.js";
import { copyButton, h } from "/app/dom.js";

const TAGS = new Set([
  ...["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"],
  ...["em", "strong", "s", "hr", "br", "a", "table", "thead", "tbody", "tr", "th", "td", "span"],
]);
const MOST = 60_000; // characters: longer answers stay plain text
const AT_ONCE = 40;
const parsed = new Map(); // trees by text
const texts = new WeakMap(); // by node

const seen = new IntersectionObserver(
  (entries) => {
    const nodes = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
    nodes.forEach((node) => seen.unobserve(node));
    for (let at = 0; at < nodes.length; at += AT_ONCE) render(nodes.slice(at, at + AT_ONCE));
  },
  { root: document.getElementById("main"), rootMargin: "800px" },
);

// A node with the text, plain until it is seen and parsed.
export function markdown(text) {
  const node = h("div", { class: "markdown plain" }, text);
  texts.set(node, text);
  if (parsed.has(text)) show(node, parsed.get(text));
  else if (text.length <= MOST) seen.observe(node);
  return node;
}

async function render(nodes) {
  const sources = nodes.map((node) => texts.get(node));
  try {
    const { trees } = await call("POST", "/modeshift/markdown", { texts: sources });
    if (parsed.size > 500) parsed.clear();
    trees.forEach((tree, n) => {
      parsed.set(sources[n], tree);
      show(nodes[n], tree);
    });
  } catch {
    /* it stays plain text */
  }
}

function show(node, tree) {
  node.classList.remove("plain");
  node.replaceChildren(...tree.map(build));
}

function build(node) {
  if (typeof node === "string") return document.createTextNode(h("i", {}, node).textContent);
  const [tag, { href, title, start, language, ...rest }, children] = node;
  const name = TAGS.has(tag) ? tag : "span";
  const outside = href ? { href, target: "_blank", rel: "noopener noreferrer" } : {};
  const made = h(
    name,
    {
      ...outside,
      title,
      start,
      class: /^[a-z0-9]{1,4}$/.test(rest.class ?? "") ? rest.class : null,
    },
    children.map(build),
  );
  if (name === "table")
    return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Table" }, made);
  if (name !== "pre") return made;
  made.tabIndex = 0;
  const label = children[0]?.[1]?.language;
  return h(
    "div",
    { class: "code" },
    h(
      "div",
      { class: "row bar" },
      h("span", {}, label || "text"),
      copyButton(() => made.textContent),
    ),
    made,
  );
}
