// What happens to a file: the lines that change, or the whole of it.
import { button, h } from "/app/dom.js";

const WORDS = { "+": "added", "-": "removed" };
const MOST = 3000; // lines at once

export function changeView({ path, before, after, lines, problem }, name = "Diff") {
  const added = lines.filter(([sign]) => sign === "+").length;
  const removed = lines.filter(([sign]) => sign === "-").length;
  const counts = h(
    "span",
    {},
    h("b", { class: "plus" }, `+${added}`),
    " ",
    h("b", { class: "minus" }, `-${removed}`),
  );
  const body = h("div", {
    class: "diff",
    tabindex: 0,
    role: "region",
    "aria-label": `${name} of ${path}`,
  });
  const toggle = button("Whole file", () => show(toggle.textContent === "Whole file"), {
    class: "quiet",
  });
  function show(isWhole) {
    toggle.textContent = isWhole ? "Changes only" : "Whole file";
    body.replaceChildren(...(isWhole ? wholeFile(after) : drawLines(lines)));
  }
  show(lines.length === 0);
  return h(
    "div",
    { class: "change" },
    h(
      "div",
      { class: "row bar" },
      h("bdi", { class: "path" }, path),
      before === null ? h("span", { class: "tag" }, "new file") : null,
      lines.length ? counts : null,
      lines.length && after !== undefined ? toggle : null,
    ),
    problem ? h("p", { class: "warning" }, problem) : null,
    !lines.length && !problem && before === after
      ? h("p", { class: "faint" }, "The text stays as it is.")
      : null,
    body,
  );
}

const wholeFile = (text) => [
  h("pre", {}, text.slice(0, 400_000), text.length > 400_000 ? "\n[the rest is not shown]" : ""),
];

function drawLines(lines, from = 0) {
  const rows = lines
    .slice(from, from + MOST)
    .map(([sign, line]) =>
      sign === "@"
        ? h("div", { class: "gap" }, line)
        : h(
            "div",
            { class: { "+": "plus", "-": "minus" }[sign] ?? "same" },
            h("span", { class: "sign", "aria-label": WORDS[sign] ?? null }, sign),
            h("span", { class: "line" }, line || " "),
          ),
    );
  if (lines.length <= from + MOST) return rows;
  const more = button(`${lines.length - from - MOST} more lines`, () =>
    more.replaceWith(...drawLines(lines, from + MOST)),
  );
  return [...rows, more];
}
