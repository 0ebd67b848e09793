// Markdown: the server parses it into a tree of known elements, once it is in view.
import { call } from "/app/api.js";
import { copyButton, h } from "/app/dom.js";

const TAGS = new Set("p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s hr br a table thead tbody tr th td span".split(" "));
const MOST = 60_000; // characters: longer answers stay plain text
const AT_ONCE = 40;
const done = new Map(); // trees by text
const waiting = new Map(); // texts by node
let timer = null;

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    timer ??= setTimeout(render, 20);
    ready.push(target);
  }
}, { root: document.getElementById("main"), rootMargin: "800px" });
let ready = [];

// A node with the text, plain until it is seen and parsed.
export function markdown(text) {
  const node = h("div", { class: "markdown plain" }, text);
  if (done.has(text)) show(node, done.get(text));
  else if (text.length <= MOST) {
    waiting.set(node, text);
    seen.observe(node);
  }
  return node;
}

async function render() {
  timer = null;
  const nodes = ready.splice(0, AT_ONCE);
  if (ready.length) timer = setTimeout(render, 20);
  const texts = nodes.map((node) => waiting.get(node));
  nodes.forEach((node) => waiting.delete(node));
  try {
    const { trees } = await call("POST", "/modeshift/markdown", { texts });
    trees.forEach((tree, n) => {
      if (done.size > 500) done.clear();
      done.set(texts[n], tree);
      show(nodes[n], tree);
    });
  } catch { /* it stays plain text */ }
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
  const made = h(name, { ...outside, title, start, class: /^[a-z0-9]{1,4}$/.test(rest.class ?? "") ? rest.class : null }, children.map(build));
  if (name === "table") return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Table" }, made);
  if (name !== "pre") return made;
  made.tabIndex = 0;
  const label = children[0]?.[1]?.language;
  return h("div", { class: "code" }, h("div", { class: "bar" }, h("span", {}, label || "text"), copyButton(() => made.textContent)), made);
}
