// The state machine as it is now: modes, the edges between them, what is open from here, the phase.
import { h, list, svg } from "/app/dom.js";
import { PHASES } from "/app/words.js";

// HALF of a box's height; MOST modes that are drawn.
const [WIDTH, HEIGHT, HALF, MOST] = [300, 200, 11, 12];

export class Machine {
  constructor(modes, { ways, limited }) {
    const asked = ways.filter((way) => way.way === "ask_for");
    Object.assign(this, { modes, asked, limited: new Set(limited) });
    const slugs = [...modes.keys()],
      at = layOut(slugs, modes);
    this.boxes = new Map(slugs.map((slug) => [slug, drawMode(modes.get(slug), at.get(slug))]));
    this.edges = asked
      .filter((way) => at.has(way.source) && at.has(way.target))
      .map((way) => {
        const about =
          `${way.source} to ${way.target}: ` +
          (way.when || (way.is_free ? "nobody is asked" : "a person says yes"));
        const title = svg("title", {}, about);
        const path = svg(
          "path",
          {
            d: drawPath(at.get(way.source), at.get(way.target)),
            "marker-end": "url(#arrow)",
            class: way.when ? "guarded" : "",
          },
          title,
        );
        return { ...way, path, title, about };
      });
    this.at = at;
    this.others = svg("g", { class: "others" });
    this.open = h("ul", { class: "ways", "aria-label": "Open from here" });
    this.now = h("p", { class: "phase lit" });
    const arrow = svg(
      "marker",
      {
        id: "arrow",
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 5,
        markerHeight: 5,
        orient: "auto",
      },
      svg("path", { d: "M0 0 8 4 0 8z" }),
    );
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: "img",
        "aria-label": "Modes, and the edges between them",
      },
      svg("defs", {}, arrow),
      this.others,
      this.edges.map((edge) => edge.path),
      [...this.boxes.values()],
    );
    this.node = h(
      "div",
      { class: "machine" },
      slugs.length > MOST ? null : [picture, this.legend()],
      this.open,
      h("p", {}, "Phase: ", this.now),
    );
  }

  legend() {
    const signs = [
      ["box lit", "the mode now"],
      ["box visited", "was used"],
      ["others", "open: you are asked"],
      ...(this.edges.length
        ? [
            ["own", "a way of its own"],
            ["guarded", "once something is so"],
            ["shut", "not yet so"],
          ]
        : []),
    ];
    const show = ([sign, text]) => [h("i", { class: sign }), " ", text];
    return list("ul", { class: "legend", "aria-label": "Legend" }, signs, show);
  }

  // Where the model may ask to go without an edge that says so.
  findOthers(mode) {
    const own = this.asked.filter(({ source }) => source === mode).map(({ target }) => target);
    const to = (this.modes.get(mode)?.ways ?? [])
      .filter((way) => !way.is_task)
      .flatMap((way) => way.to);
    return [...this.modes.keys()].filter(
      (slug) =>
        slug !== mode &&
        !own.includes(slug) &&
        (to.includes("*") || to.includes(slug)) &&
        this.isWithin(slug),
    );
  }

  isWithin(slug) {
    return !this.limit || Boolean(this.modes.get(this.limit)?.within.includes(slug));
  }

  drawOthers(mode) {
    const key = `${mode} ${this.limit}`;
    if (this.others.dataset.mode === key) return;
    this.others.dataset.mode = key;
    this.others.replaceChildren(
      ...(this.at.has(mode) ? this.findOthers(mode) : []).map((slug) =>
        svg("path", {
          d: drawPath(this.at.get(mode), this.at.get(slug)),
          "marker-end": "url(#arrow)",
        }),
      ),
    );
  }

  draw({ mode, limit }, phase, changes, facts = {}) {
    this.limit = limit;
    this.drawOthers(mode);
    const visited = new Set(changes.flatMap((change) => [change.source, change.target]));
    for (const [slug, box] of this.boxes) {
      box.setAttribute(
        "class",
        [
          "mode",
          slug === mode && "lit",
          visited.has(slug) && "visited",
          this.modes.get(slug).by_hand && "alone",
        ]
          .filter(Boolean)
          .join(" "),
      );
      box.toggleAttribute("aria-current", slug === mode);
    }
    for (const { source, path, title, about, tree, when, ...way } of this.edges) {
      const isBeyond = !this.isWithin(way.target);
      const isShut =
        source === mode && (isBeyond || (Boolean(tree) && this.holds(tree, facts) !== true));
      path.classList.toggle("lit", source === mode && !isShut);
      path.classList.toggle("shut", isShut);
      title.textContent = isBeyond ? `${source} to ${way.target}: beyond the limit` : about;
      if (tree && !isBeyond)
        title.textContent =
          `${source} to ${way.target}: ${isShut ? "shut until" : "once"} ${when}` +
          (source === mode ? this.known(way.facts, facts) : "");
    }
    this.now.textContent = phase;
    this.now.title = PHASES[phase]?.[1] ?? "A phase of its own.";
    const ways = this.asked.filter((way) => way.source === mode && this.isWithin(way.target));
    const yes = ": a person says yes";
    const rest = limit || this.limited.has(mode)
      ? this.findOthers(mode).map((slug) =>
          h("li", {}, h("bdi", {}, this.modes.get(slug).name), yes),
        )
      : [h("li", {}, ways.length ? "any other mode" : "any mode", yes)];
    const alone = [...this.modes.values()]
      .filter((one) => one.by_hand && one.slug !== mode)
      .map((one) => h("li", {}, h("bdi", {}, one.name), ": only you can choose it"));
    this.open.replaceChildren(...ways.map((way) => this.way(way, facts)), ...rest, ...alone);
    if (!this.open.children.length)
      this.open.append(h("li", {}, "nowhere; you can still choose a mode"));
  }

  // The facts of a condition, each with whether it is so; of what files say nothing is known here.
  way({ target, when, tree, facts: names, is_free }, facts) {
    const until = this.holds(tree, facts) === true ? "open, as " : "shut until ";
    return h(
      "li",
      {},
      h("bdi", {}, this.modes.get(target)?.name ?? target),
      ": ",
      when
        ? h("span", {}, until, h("code", {}, when), this.known(names, facts))
        : is_free
          ? "nobody is asked"
          : "a person says yes",
    );
  }

  fact(name, facts) {
    if (name === "tests_changed" || facts.broken?.includes(name)) return null;
    return ["mode", "conversation", "workspace"].some((scope) => facts[scope]?.includes(name));
  }

  known(names, facts) {
    const mark = (so) => (so === null ? "?" : so ? "✓" : "✗");
    return names.length
      ? ` (${names.map((name) => `${name} ${mark(this.fact(name, facts))}`).join(", ")})`
      : "";
  }

  // As the engine holds a condition: null where a fact that decides is not known here.
  holds(tree, facts) {
    if (typeof tree === "string") return this.fact(tree, facts);
    const [operator, ...parts] = tree ?? ["and"],
      values = parts.map((part) => this.holds(part, facts));
    if (operator === "not") return values[0] === null ? null : !values[0];
    const decides = operator === "or";
    return values.includes(decides) ? decides : values.includes(null) ? null : !decides;
  }
}

function layOut(slugs, modes) {
  return new Map(
    slugs.map((slug, n) => {
      const angle = (n / slugs.length) * 2 * Math.PI - Math.PI / 2,
        { name } = modes.get(slug);
      const width = Math.min(name.length, 16) * 3.1 + 9;
      return [
        slug,
        {
          x: WIDTH / 2 + (WIDTH / 2 - width - 2) * Math.cos(angle),
          y: (HEIGHT / 2) * (1 + 0.84 * Math.sin(angle)),
          width,
        },
      ];
    }),
  );
}

function drawMode({ name, by_hand: isAlone }, { x, y, width }) {
  return svg(
    "g",
    { class: "mode" },
    svg("title", {}, isAlone ? `${name}: only you can choose it` : name),
    svg("rect", { x: x - width, y: y - HALF, width: 2 * width, height: 2 * HALF, rx: HALF }),
    svg(
      "text",
      { x, y: y + 3.5, "text-anchor": "middle" },
      name.length > 16 ? `${name.slice(0, 15)}…` : name,
    ),
  );
}

// From border to border, a little to the right of the one that leads back.
function drawPath(from, to) {
  const long = Math.hypot(to.x - from.x, to.y - from.y) || 1,
    dx = (to.x - from.x) / long,
    dy = (to.y - from.y) / long;
  const cut = ({ width }) =>
    Math.min(width / Math.abs(dx || 1e-9), HALF / Math.abs(dy || 1e-9)) + 2;
  const at = (box, along) => `${box.x + dx * along - dy * 3} ${box.y + dy * along + dx * 3}`;
  return `M${at(from, cut(from))}L${at(to, -cut(to))}`;
}
