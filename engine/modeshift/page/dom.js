// Builds nodes. Text is only ever text: nothing of a model, tool or file is parsed as HTML.

// As modes/plain_text.py: control characters, those that reorder text, those without width.
const UNSEEN = new RegExp(
  String.raw`[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e` +
    String.raw`\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0` +
    String.raw`\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]` +
    String.raw`|[\u034f\u180b-\u180d\u180f\u200c\u200d\ufe0e\ufe0f]{3,}`,
  "gu",
);
const LINKS = /^(https?:|mailto:|#|\/(?!\/))/i;

// The text with characters written out that do not show, or that hide others.
export function readable(text) {
  return String(text)
    .replaceAll("\r\n", "\n")
    .replace(UNSEEN, (match) =>
      Array.from(match, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0")).join(""),
    );
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (name.startsWith("on")) throw new TypeError(`${name} takes a function`);
    else if (name === "href" && !LINKS.test(value)) node.title = readable(value);
    else if (name === "value") node.value = value;
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, readable(value));
  }
  node.append(
    ...children
      .flat(Infinity)
      .filter((child) => child != null && child !== false)
      .map((child) => (child instanceof Node ? child : document.createTextNode(readable(child)))),
  );
  return node;
}

export const h = (tag, properties, ...children) =>
  fill(document.createElement(tag), properties, children);

export const svg = (tag, properties, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

export const list = (tag, properties, items, make) =>
  h(tag, properties, ...items.map((item) => h("li", {}, make(item))));

export const button = (text, onclick, properties) =>
  h("button", { type: "button", onclick, ...properties }, text);

export const iconButton = (sign, title, onclick, properties) =>
  button(sign, onclick, { class: "icon", "aria-label": title, title, ...properties });

// Enter acts; with Shift it is a line break.
export function onEnter(field, act) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    act();
  });
  return field;
}

export const get = (id) => document.getElementById(id);

// For screen readers: what has happened, in a sentence; not what streams.
export function announce(text) {
  get("said").textContent = readable(text);
}

// A short note that goes away, and is read out.
export function toast(text) {
  announce(text);
  const node = h("div", { class: "toast" }, text);
  document.body.append(node);
  setTimeout(() => node.remove(), 6000);
}

export function copyButton(getText, label = null) {
  return button(
    "Copy",
    async (event) => {
      await navigator.clipboard.writeText(getText());
      event.target.textContent = "Copied";
      setTimeout(() => (event.target.textContent = "Copy"), 1500);
    },
    { class: "copy", "aria-label": label },
  );
}

// Whether a person says yes to what the button says.
export async function confirm(title, content, label, { no = "Cancel", kind = "main" } = {}) {
  return (await ask(title, content, ["", no], [label, label, kind])) === label;
}

// Asks with a dialog of the page: the value of what was clicked, or null.
export function ask(title, content, ...buttons) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-label": title },
      h(
        "form",
        { method: "dialog" },
        h("h2", {}, title),
        content,
        h(
          "p",
          { class: "row" },
          buttons.map(([value, text, kind]) => h("button", { value, class: kind }, text)),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue || null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
