// What happens to a file: the lines that change, or the whole of it.
import { coloursOf } from "/app/colours.js";
import { button, h } from "/app/dom.js";

const WORDS = { "+": "added", "-": "removed" };
const MOST = 3000; // lines at once

export function changeView({ path, before, after, lines, problem }, name = "Diff") {
  const added = lines.filter(([sign]) => sign === "+").length;
  const removed = lines.filter(([sign]) => sign === "-").length;
  const same = lines.filter(([sign]) => sign === " ").length;
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
  const extent = h("p", { class: "faint extent" });
  const tell = () => tellExtent(extent, body, added + removed + same);
  function show(isWhole) {
    toggle.textContent = isWhole ? "Changes only" : "Whole file";
    body.replaceChildren(...(isWhole ? wholeFile(after) : drawLines(numbered(lines), path)));
    tell();
  }
  body.addEventListener("scroll", tell);
  new ResizeObserver(tell).observe(body);
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
    extent,
    body,
  );
}

function tellExtent(node, body, count) {
  const end = body.scrollTop + body.clientHeight;
  const rows = [...body.querySelectorAll(".line")];
  const seen = rows.filter((line) => line.offsetTop + line.offsetHeight <= end + 4).length;
  const isAll = body.scrollHeight <= body.clientHeight + 2 || !rows.length;
  node.textContent = isAll ? "" : `Shown up to line ${seen} of ${count}`;
}

// Each line with its number in the file: of one that is removed, in the old file.
function numbered(lines) {
  let [now, shift] = [NaN, 0];
  return lines.map(([sign, line]) => {
    const start = sign === "@" && /^line (\d+)$/.exec(line);
    if (start) now = Number(start[1]);
    if (sign === "@") return [sign, line];
    const number = sign === "-" ? now - shift-- : now++;
    if (sign === "+") shift++;
    return [sign, line, number];
  });
}

const wholeFile = (text) => [
  h("pre", {}, text.slice(0, 400_000), text.length > 400_000 ? "\n[the rest is not shown]" : ""),
];

function drawLines(lines, path, from = 0) {
  const colour = coloursOf(path);
  const rows = lines
    .slice(from, from + MOST)
    .map(([sign, line, number]) =>
      sign === "@"
        ? h("div", { class: "gap" }, line)
        : h(
            "div",
            { class: { "+": "plus", "-": "minus" }[sign] ?? "same", "data-n": number || null },
            h("span", { class: "sign", "aria-label": WORDS[sign] ?? null }, sign),
            h("span", { class: "line" }, line ? colour(line) : " "),
          ),
    );
  if (lines.length <= from + MOST) return rows;
  const more = button(`${lines.length - from - MOST} more lines`, () =>
    more.replaceWith(...drawLines(lines, path, from + MOST)),
  );
  return [...rows, more];
}
