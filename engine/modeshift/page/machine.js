// The state machine as it is now: our own drawing of the chart, the current mode and phase lit.
import { h, svg } from "/app/dom.js";

const [WIDTH, HEIGHT, HALF] = [300, 226, 11]; // HALF of a box's height

export class Machine {
  constructor(modes, { phases, edges }) {
    this.chips = new Map([...modes.values()].map((one) => [one.slug, h("li", {}, h("bdi", {}, one.name))]));
    const boxes = layOut(phases, edges);
    this.phases = new Map(phases.map((phase) => [phase, drawPhase(phase, boxes.get(phase))]));
    this.edges = edges.map(([source, event, target]) => {
      const title = svg("title", {}, `${source}, ${event}: ${target}`), d = drawPath(boxes.get(source), boxes.get(target));
      return { source, target, path: svg("path", { d, "marker-end": "url(#arrow)" }, title) };
    });
    this.now = h("p", { class: "unseen" });
    const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, svg("path", { d: "M0 0 8 4 0 8z" }));
    this.node = h("div", { class: "machine" },
      h("ul", { class: "row modes", "aria-label": "Modes" }, [...this.chips.values()]), this.now,
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Phases of a turn" },
        svg("defs", {}, arrow), this.edges.map((one) => one.path), [...this.phases.values()]));
  }

  draw(mode, phase, changes) {
    const visited = new Set(changes.flatMap((one) => [one.source, one.target]));
    for (const [slug, chip] of this.chips) {
      chip.className = `${slug === mode ? "lit" : ""} ${visited.has(slug) ? "visited" : ""}`;
      chip.toggleAttribute("aria-current", slug === mode);
    }
    if (phase === this.phase) return;
    for (const [name, box] of this.phases) box.classList.toggle("lit", name === phase);
    for (const { source, target, path } of this.edges) path.classList.toggle("lit", source === this.phase && target === phase);
    this.phase = phase;
    this.now.textContent = `Phase: ${phase}`;
  }
}

// The phase with the most edges in the middle, the others around it, neighbours side by side.
function layOut(phases, edges) {
  const linked = (one, other) => edges.some(([source, , target]) => (source === one && target === other) || (source === other && target === one));
  const count = (phase) => phases.filter((one) => linked(one, phase)).length;
  const [hub, ...rest] = [...phases].sort((one, other) => count(other) - count(one));
  const left = phases.filter((phase) => rest.includes(phase)), boxes = new Map();
  const put = (phase, x, y) => boxes.set(phase, { x, y, width: phase.length * 3.1 + 9 });
  put(hub, WIDTH / 2, HEIGHT / 2);
  for (let last = hub, n = 0; left.length; n++) {
    const [next] = left.splice(Math.max(0, left.findIndex((one) => linked(one, last))), 1);
    const angle = (n / rest.length) * 2 * Math.PI - Math.PI / 2;
    put((last = next), (WIDTH / 2) * (1 + 0.7 * Math.cos(angle)), (HEIGHT / 2) * (1 + 0.84 * Math.sin(angle)));
  }
  return boxes;
}

function drawPhase(phase, { x, y, width }) {
  return svg("g", { class: "phase" }, svg("rect", { x: x - width, y: y - HALF, width: 2 * width, height: 2 * HALF, rx: HALF }),
    svg("text", { x, y: y + 3.5, "text-anchor": "middle" }, phase.replaceAll("_", " ")));
}

// From border to border, a little to the right of the one that leads back.
function drawPath(from, to) {
  if (from === to) return `M${from.x - 8} ${from.y + HALF}c-8 22 24 22 16 0`;
  const long = Math.hypot(to.x - from.x, to.y - from.y), dx = (to.x - from.x) / long, dy = (to.y - from.y) / long;
  const cut = ({ width }) => Math.min(width / Math.abs(dx || 1e-9), HALF / Math.abs(dy || 1e-9)) + 2;
  const at = (box, along) => `${box.x + dx * along - dy * 3} ${box.y + dy * along + dx * 3}`;
  return `M${at(from, cut(from))}L${at(to, -cut(to))}`;
}
