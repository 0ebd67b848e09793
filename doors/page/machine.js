// The state machine as it is now: our own drawing of the chart, the current mode and phase lit.
import { h, svg } from "/app/dom.js";

const [WIDTH, HEIGHT, LEFT, TOP] = [300, 220, 150, 110];

export class Machine {
  constructor(modes, { phases, edges }) {
    this.modes = modes;
    this.chips = new Map([...modes.values()].map((one) => [one.slug, h("li", {}, h("bdi", {}, one.name))]));
    this.places = layOut(phases, edges);
    this.boxes = new Map(phases.map((phase) => [phase, drawPhase(phase, this.places.get(phase))]));
    this.lines = edges.map((edge) => [edge, drawEdge(edge, this.places)]);
    this.now = h("p", { class: "unseen" });
    const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, svg("path", { d: "M0 0 8 4 0 8z" }));
    this.node = h("div", { class: "machine" },
      h("ul", { class: "modes", "aria-label": "Modes" }, [...this.chips.values()]), this.now,
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Phases of a turn" },
        svg("defs", {}, arrow), this.lines.map(([, line]) => line), [...this.boxes.values()]));
  }

  draw(mode, phase, changes) {
    const visited = new Set(changes.flatMap((one) => [one.source, one.target]));
    for (const [slug, chip] of this.chips) {
      chip.className = `${slug === mode ? "lit" : ""} ${visited.has(slug) ? "visited" : ""}`;
      chip.toggleAttribute("aria-current", slug === mode);
    }
    if (phase === this.phase) return;
    for (const [name, box] of this.boxes) box.classList.toggle("lit", name === phase);
    for (const [[source, , target], line] of this.lines) line.classList.toggle("lit", source === this.phase && target === phase);
    this.phase = phase;
    this.now.textContent = `Phase: ${phase}`;
  }
}

// The phase with the most edges in the middle, the others around it.
function layOut(phases, edges) {
  const degree = (phase) => edges.filter(([source, , target]) => source === phase || target === phase).length;
  const [hub, ...rest] = [...phases].sort((a, b) => degree(b) - degree(a));
  const around = phases.filter((phase) => rest.includes(phase));
  const places = new Map([[hub, [LEFT, TOP]]]);
  around.forEach((phase, n) => {
    const angle = (n / around.length) * 2 * Math.PI - Math.PI / 2;
    places.set(phase, [LEFT + 105 * Math.cos(angle), TOP + 88 * Math.sin(angle)]);
  });
  return places;
}

function drawPhase(phase, [x, y]) {
  const width = phase.length * 6.4 + 16;
  return svg("g", { class: "phase" },
    svg("rect", { x: x - width / 2, y: y - 12, width, height: 24, rx: 12 }), svg("text", { x, y: y + 4, "text-anchor": "middle" }, phase));
}

function drawEdge([source, event, target], places) {
  const [x1, y1] = places.get(source), [x2, y2] = places.get(target);
  if (source === target) return svg("path", { class: "edge", d: `M${x1 - 8} ${y1 + 12}c-8 22 24 22 16 0`, "marker-end": "url(#arrow)" }, svg("title", {}, event));
  const length = Math.hypot(x2 - x1, y2 - y1), [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const cut = (along) => Math.min(along ? 30 : 14, length / 3);
  const off = Math.abs(dx) > 0.6;
  const [sx, sy, ex, ey] = [x1 + dx * cut(off), y1 + dy * cut(off), x2 - dx * cut(off), y2 - dy * cut(off)];
  const [mx, my] = [(sx + ex) / 2 - dy * 10, (sy + ey) / 2 + dx * 10];
  return svg("path", { class: "edge", d: `M${sx} ${sy}Q${mx} ${my} ${ex} ${ey}`, "marker-end": "url(#arrow)" }, svg("title", {}, `${source}, ${event}: ${target}`));
}
