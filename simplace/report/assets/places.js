"use strict";
// The devices of an overview: boxes in rows, in the order of their numbers; copies run between and around them.

const LANE_HEIGHT = 32; // between two lines that run beside each other, with room for their labels
const LEAST_ALLEY = 70; // between two devices
const APART = 5; // pixels between lines that run down
const BAR_HEIGHT = 40; // of a collective

/**
 * Give devices, and the bars of collectives below them, their places, and edges their points; return the size.
 * Rows are as long as suits a screen of the proportions `aspect`, width by height.
 */
function arrangePlaces(boxes, edges, bars, aspect) {
  let best = null;
  for (let columns = 1; columns <= Math.max(1, boxes.length); columns += 1) {
    const tried = new Rows(boxes, edges, bars, columns);
    const scale = Math.min(aspect / tried.width, 1 / tried.height);
    if (!best || scale > best.scale * 1.05) best = { scale, columns };
  }
  const rows = new Rows(boxes, edges, bars, best.columns);
  rows.draw();
  return { width: rows.width, height: rows.height };
}

class Rows {
  constructor(boxes, edges, bars, columns) {
    Object.assign(this, { boxes, edges, bars, columns });
    this.rows = [];
    for (let i = 0; i < boxes.length; i += columns) this.rows.push(boxes.slice(i, i + columns));
    this.deviceRows = this.rows.length;
    this.rows.push(...bars.map((bar) => [bar]));
    this.at = new Map(this.rows.flatMap((row, r) => row.map((box, c) => [box.item, { box, r, c }])));
    this.lanes = this.rows.map(() => 0); // lines in the band above each row
    this.docks = new Map();
    this.taken = []; // where lines run down, of all rows
    this.margin = 0; // lines at the left of all rows
    this.alleys = new Map(); // edges between neighbours in a row
    this.arms = bars.flatMap((bar) => bar.places.map((item) => ({ from: item, to: bar.item, arm: bar, points: [] })));
    this.routes = [...edges, ...this.arms].map((edge) => this.#route(edge));
    this.#size();
  }

  /** Choose how a line runs: through the alley between neighbours, or by the bands above the rows. */
  #route(edge) {
    const [from, to] = [this.at.get(edge.from), this.at.get(edge.to)];
    edge.arrows = from.r === to.r ? "→←" : "↓↑"; // both ways along it: the first device stands above, or at the left
    if (from.r === to.r && Math.abs(from.c - to.c) === 1 && !edge.arm) {
      const key = `${from.r} ${Math.min(from.c, to.c)}`;
      if (!this.alleys.has(key)) this.alleys.set(key, []);
      this.alleys.get(key).push(edge);
      return { edge, from, to, alley: key };
    }
    const down = to.r > from.r;
    const bands = from.r === to.r ? [from.r] : down ? [from.r + 1, to.r] : [from.r, to.r + 1];
    const used = bands[0] === bands[1] ? [bands[0]] : bands;
    const lanes = used.map((band) => { this.lanes[band] += 1; return [band, this.lanes[band]]; });
    const docks = [this.#dock(from, down ? "bottom" : "top"), this.#dock(to, from.r === to.r || down ? "top" : "bottom")];
    if (lanes.length > 1) this.margin += 1;
    return { edge, from, to, lanes, docks, margin: this.margin };
  }

  #dock({ box }, side) {
    const key = `${box.item} ${side}`;
    const number = (this.docks.get(key) ?? 0) + 1;
    this.docks.set(key, number);
    return { key, number, side };
  }

  #size() {
    const longest = [...this.alleys.values()].flat().map(edgeTextWidth);
    this.alley = Math.max(LEAST_ALLEY, ...longest.map((width) => width + 46));
    this.left = this.margin ? this.margin * LANE_HEIGHT + 10 : 0;
    const lengths = this.rows.map((row) => row.reduce((sum, box) => sum + box.width + this.alley, -this.alley));
    this.inner = Math.max(...lengths.slice(0, this.deviceRows), 1);
    this.width = this.left + this.inner;
    this.tops = [];
    let y = 0;
    this.rows.forEach((row, r) => {
      y += this.lanes[r] ? this.lanes[r] * LANE_HEIGHT + 26 : r ? GAP * 2 : 0;
      this.tops.push(y);
      y += Math.max(...row.map((box) => box.height));
    });
    this.height = y;
  }

  draw() {
    this.rows.forEach((row, r) => {
      let x = this.left;
      for (const box of row) {
        if (r >= this.deviceRows) box.width = this.inner;
        Object.assign(box, { x, y: this.tops[r] });
        x += box.width + this.alley;
      }
    });
    for (const route of this.routes) {
      if (route.alley) this.#drawAlley(route);
      else this.#drawBands(route);
      route.edge.isStraight = true;
    }
    for (const { edge, alley } of this.routes) if (!alley && !edge.arm) this.#clearLabel(edge);
    for (const bar of this.bars) bar.arms = this.arms.filter((arm) => arm.arm === bar);
  }

  #drawAlley({ edge, from, to, alley }) {
    const edges = this.alleys.get(alley);
    const room = Math.min(from.box.height, to.box.height);
    const step = Math.min(LANE_HEIGHT + 8, room / (edges.length + 1));
    const y = from.box.y + room / 2 + (edges.indexOf(edge) - (edges.length - 1) / 2) * step;
    const ends = from.c < to.c ? [from.box.x + from.box.width, to.box.x] : [from.box.x, to.box.x + to.box.width];
    edge.points = ends.map((x) => ({ x, y }));
    edge.labelAt = { x: (ends[0] + ends[1]) / 2, y };
  }

  #drawBands({ edge, from, to, lanes, docks, margin }) {
    const [start, end] = [this.#dockAt(from, docks[0]), this.#dockAt(to, docks[1])];
    if (edge.arm || (lanes.length === 1 && Math.abs(start.x - end.x) < 2 * APART)) end.x = start.x;
    const levels = lanes.map(([band, lane]) => this.tops[band] - 8 - lane * LANE_HEIGHT);
    const bends = levels.length === 1
      ? [{ x: start.x, y: levels[0] }, { x: end.x, y: levels[0] }]
      : [{ x: start.x, y: levels[0] }, { x: this.left - margin * LANE_HEIGHT, y: levels[0] },
        { x: this.left - margin * LANE_HEIGHT, y: levels[1] }, { x: end.x, y: levels[1] }];
    edge.points = [start, ...bends, end];
    const [left, right] = [bends.at(-2), bends.at(-1)];
    edge.labelAt = { x: (left.x + right.x) / 2, y: right.y };
  }

  /** Move a label along its line to the nearest place where no other line runs down through it, if there is one. */
  #clearLabel(edge) {
    const [left, right] = [edge.points.at(-3).x, edge.points.at(-2).x].sort((one, other) => one - other);
    const half = edgeTextWidth(edge) / 2 + 8;
    const tall = 7 * edgeLines(edge).length + 1;
    const { x, y } = edge.labelAt;
    const crossing = this.routes.filter((route) => route.edge !== edge).flatMap((route) => piecesDown(route.edge.points))
      .filter(({ top, bottom }) => top < y + tall && bottom > y - tall).map((piece) => piece.x);
    const isFree = (at) => crossing.every((other) => Math.abs(other - at) > half);
    const places = [x, ...crossing.flatMap((other) => [other - half - 1, other + half + 1])]
      .filter((at) => at === x || (at - half >= left && at + half <= right));
    const free = places.filter(isFree).sort((one, other) => Math.abs(one - x) - Math.abs(other - x));
    if (free.length) edge.labelAt.x = free[0];
  }

  #dockAt({ box }, { key, number, side }) {
    const count = this.docks.get(key);
    // Lines that enter at the top stand between those that leave boxes of the same width above at the bottom.
    const share = count === 1 ? 0.5 : (number - (side === "top" ? 0.3 : 0.7)) / count;
    return { x: this.#free(box, box.x + box.width * share), y: side === "top" ? box.y : box.y + box.height };
  }

  /** Return the place nearest to the right of `x` where no other line runs down. */
  #free(box, x) {
    let at = x;
    for (let tries = 0; tries < box.width / APART && this.taken.some((other) => Math.abs(other - at) < APART); tries += 1) {
      at = at + APART < box.x + box.width - APART ? at + APART : box.x + APART;
    }
    this.taken.push(at);
    return at;
  }
}

/** Return the pieces of a line that run down or up. */
function piecesDown(points) {
  return points.slice(1).flatMap((point, i) => (point.x === points[i].x
    ? [{ x: point.x, top: Math.min(point.y, points[i].y), bottom: Math.max(point.y, points[i].y) }] : []));
}

/** Sum collectives up by kind and devices: those that copies make are drawn as these. */
function collectiveVolumes(program) {
  const { kind, devices, size, copies, members } = program.raw.collectives;
  const found = new Map();
  for (const i of kind.keys()) {
    if (copies[i].length) continue;
    const key = `${kind[i]} ${devices[i]}`;
    if (!found.has(key)) found.set(key, { kind: program.text(kind[i]), devices: devices[i], numbers: [], size: 0, isKnown: true, nodes: [] });
    const volume = found.get(key);
    volume.numbers.push(i);
    volume.size += Math.max(0, size[i]);
    volume.isKnown &&= size[i] >= 0;
    volume.nodes.push(...members[i]);
  }
  return [...found.values()];
}

/** Make the bars of collectives: wide boxes without a node of their own. */
function collectiveBars(program, tree) {
  const { place } = program.raw.overview;
  return collectiveVolumes(program).map((volume, i) => {
    const types = new Set(volume.devices.map((device) => program.deviceSign(device).label.replace(/:\d+$/, "")));
    const each = types.size === 1 ? [...types][0] : "device";
    const amount = volume.isKnown || volume.size ? `${volume.isKnown ? "" : "≥ "}${bytes(volume.size)}` : "unknown size";
    const places = new Set(volume.nodes.map((node) => tree.path(tree.itemOf[node])[0]));
    return {
      item: -1 - i, volume, places: [...places], x: 0, y: 0, width: 1, height: BAR_HEIGHT,
      label: `${volume.kind} ×${volume.numbers.length.toLocaleString("en")}, ${amount} per ${each}`,
    };
  });
}
