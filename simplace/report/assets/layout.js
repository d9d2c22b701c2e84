"use strict";
// Where boxes and edges go: each open scope is laid out by itself, and edges between scopes run between their boxes.

const LEAF_HEIGHT = 40;
const SCOPE_HEIGHT = 50;
const HEADER = 26; // of an open scope
const PADDING = 12;
const GAP = 18;
const TAG = 30; // the letters at a node's left
const WIDEST = 200;
const MOST_PORTS = 12; // edges out of an open scope that are drawn inside it; more would be a knot

class Layout {
  constructor(program, tree, { showControl, subline, badges = () => 0, aspect = 1.5 }) {
    this.aspect = aspect; // of the screen: width by height
    this.program = program;
    this.tree = tree;
    this.showControl = showControl;
    this.subline = subline; // the small text of a box
    this.badges = badges; // how wide a closed scope is to be for its bar to be read
    this.known = new Map();
    this.opened = new Set(); // the items that were open when `known` was laid out
    this.edgesOf = new Map(); // what an item's parts send each other, and what enters and leaves
  }

  /** Forget every place, and every edge: what is drawn has changed. */
  clear() {
    this.known.clear();
    this.edgesOf = new Map(); // steps at work on the old ones end there
  }

  /** Open these items and no others: what holds one that was closed, or was open, is laid out again. */
  use(open) {
    for (const item of [...this.opened, ...open]) {
      if (this.opened.has(item) === open.has(item)) continue;
      for (const at of [...this.tree.above(item), 0]) this.known.delete(at);
    }
    this.opened = new Set(open);
  }

  /** Lay out the inside of an open item: boxes and edges in its own coordinates. `use` was told the open items. */
  inside(item) {
    if (!this.known.has(item)) this.known.set(item, this.#inside(item));
    return this.known.get(item);
  }

  #inside(item) {
    const boxes = this.tree.partsOf(item).map((part) => this.#box(part));
    const { all, outer } = this.#edgesAt(item);
    if (item === 0 && this.tree.hasPlaces) return this.#places(boxes, all);
    const hides = new Set(boxes.filter((box) => this.tree.isScope(box.item)).map((box) => box.item));
    const edges = withoutImplied(all, (edge) => !edge.copies.size && (hides.has(edge.from) || hides.has(edge.to)));
    const ports = item === 0 || this.tree.isPlace(item) ? [] : outer;
    const joined = new Set([...edges, ...ports].flatMap((edge) => [edge.from, edge.to]));
    const { width, height } = arrange(boxes.filter((box) => joined.has(box.item)), edges, ports);
    const alone = boxes.filter((box) => !joined.has(box.item));
    const leaves = ports.some((edge) => edge.to === "out"); // lines run down to the frame
    const size = leaves ? inColumns(alone, width, height) : inRows(alone, width, height);
    return { boxes, edges, ports, bars: [], hidden: all.length - edges.length, ...size, ...led(ports, size.height) };
  }

  /** Lay out devices: an overview. */
  #places(boxes, edges) {
    const bars = collectiveBars(this.program, this.tree);
    const bundles = bundled(edges);
    const size = arrangePlaces(boxes, bundles, bars, this.aspect);
    return { boxes, edges: bundles, ports: [], bars, hidden: 0, ...size };
  }

  #box(item) {
    const label = elide(visible(elide(this.tree.label[item], 200)), 60);
    const small = this.subline(item);
    if (this.tree.isScope(item) && this.opened.has(item)) {
      const inner = this.inside(item);
      const title = this.tree.isPlace(item) ? placeTitleWidth(label, small) : Math.min(textWidth(label) + 60, WIDEST);
      const width = Math.max(inner.width + 2 * PADDING, title);
      return { item, inner, label, width, height: inner.height + HEADER + 2 * PADDING, x: 0, y: 0 };
    }
    const isScope = this.tree.isScope(item);
    const text = Math.max(textWidth(label) + (isScope ? 28 : 0), textWidth(small)) + TAG + 16;
    const bar = isScope ? this.badges(item) : 0;
    const wanted = bar <= WIDEST ? Math.max(text, bar) : text;
    const isRefused = !isScope && this.program.refused.has(this.tree.leaf[item]); // what it requests is all that matters
    const width = Math.min(Math.max(wanted, isScope ? 140 : 90), isRefused ? 2 * WIDEST : WIDEST);
    return { item, inner: null, label, small, width, height: isScope ? SCOPE_HEIGHT : LEAF_HEIGHT, x: 0, y: 0 };
  }

  /** Sum up, in steps, what the first screen needs: the parts of the graph, and of the largest of them. */
  *sumUpFirst() {
    yield* this.tree.makeParts(0);
    yield;
    yield* this.#sumUp(0);
    yield;
    const large = this.tree.partsOf(0).filter((item) => this.tree.isScope(item) && this.tree.size(item) >= STEP);
    for (const item of large) {
      yield* this.tree.makeParts(item);
      yield;
      yield* this.#sumUp(item);
      yield;
    }
  }

  /** Lay out the inside of an item in steps, the open items in it first; it is at hand then. */
  *layOut(item) {
    if (this.known.has(item)) return;
    yield* this.tree.makeParts(item);
    yield;
    for (const part of this.tree.partsOf(item)) if (this.tree.isScope(part) && this.opened.has(part)) yield* this.layOut(part);
    yield* this.#sumUp(item);
    yield;
    this.inside(item);
    yield;
  }

  #edgesAt(item) {
    if (!this.edgesOf.has(item)) doAtOnce(this.#sumUp(item));
    return this.edgesOf.get(item);
  }

  /** Sum up, in steps, the edges between the parts of an item, and those between them and the rest of the graph. */
  *#sumUp(item) {
    const known = this.edgesOf;
    if (known.has(item)) return;
    const { tree, program } = this;
    const { src, dst, slot } = program.raw.edges;
    const { outStart, outEdges, inStart, inEdges } = program;
    const [inner, outer] = [new Map(), new Map()];
    const nodes = tree.nodes(item).slice(); // their order may change between two steps
    const partOfNode = this.#markParts(item);
    let seen = 0;
    for (const node of nodes) {
      seen += 1;
      if (seen % STEP === 0) yield;
      const part = partOfNode[node];
      for (let at = outStart[node]; at < outStart[node + 1]; at += 1) {
        const edge = outEdges[at];
        if (!this.showControl && slot[edge] === CONTROL) continue;
        const to = partOfNode[dst[edge]];
        if (to < 0) this.#count(outer, part, "out", edge);
        else if (part !== to) this.#count(inner, part, to, edge);
      }
      if (item === 0) continue; // nothing comes from outside
      for (let at = inStart[node]; at < inStart[node + 1]; at += 1) {
        const edge = inEdges[at];
        if ((this.showControl || slot[edge] !== CONTROL) && partOfNode[src[edge]] < 0) this.#count(outer, "in", part, edge);
      }
    }
    for (const node of nodes) partOfNode[node] = -1;
    this.partOfNode = partOfNode;
    const crossing = [...outer.values()];
    const few = ["in", "out"].flatMap((end) => {
      const these = crossing.filter((edge) => edge.from === end || edge.to === end);
      return these.length <= MOST_PORTS ? these : [];
    });
    known.set(item, { all: [...inner.values()].sort((one, other) => one.from - other.from || one.to - other.to), outer: few });
  }

  /** Return a column with the part of an item that holds each of its nodes, -1 for all other nodes. */
  #markParts(item) {
    const { tree } = this;
    const partOfNode = this.partOfNode ?? new Int32Array(this.program.count).fill(-1);
    this.partOfNode = null; // another may want one between two steps
    for (const part of tree.partsOf(item)) for (const node of tree.nodes(part)) partOfNode[node] = part;
    return partOfNode;
  }

  #count(found, from, to, number) {
    const key = (from === "in" ? 0 : from) * 67108864 + (to === "out" ? 0 : to);
    let edge = found.get(key);
    if (!edge) {
      edge = { from, to, count: 0, control: 0, copies: new Set(), size: 0, points: [] };
      found.set(key, edge);
    }
    edge.count += 1;
    edge.control += this.program.isControl(number) ? 1 : 0;
    const copy = this.program.copyOfEdge[number];
    if (this.program.crosses(number) && !edge.copies.has(copy)) {
      edge.copies.add(copy);
      edge.size += Math.max(0, this.program.raw.copies.size[copy]);
    }
  }
}

/** Return how wide an open device is so that its title can be read to its end. */
function placeTitleWidth(label, detail) {
  return Math.min(textWidth(`− ${label}`, 12, 600) + textWidth(detail) + 64, 2 * WIDEST);
}

/** Give boxes their places in layers and edges their points; return the size of it all. */
function arrange(boxes, edges, ports) {
  if (!boxes.length) return { width: 0, height: 0 };
  let graph = layered(boxes, edges, ports, []);
  const bound = endsToBind(graph, boxes);
  if (bound.length) graph = layered(boxes, edges, ports, bound);
  for (const box of boxes) {
    const { x, y } = graph.node(String(box.item));
    box.x = x - box.width / 2;
    box.y = y - box.height / 2;
  }
  const byItem = new Map(boxes.map((box) => [box.item, box]));
  const layers = layersOf(boxes);
  const dock = (end, side) => {
    const box = byItem.get(end);
    if (!box) return { ...graph.node(end), top: -Infinity, bottom: Infinity };
    const middle = box.inner?.[side] === undefined ? box.width / 2 : (box.width - box.inner.width) / 2 + box.inner[side];
    return { x: box.x + middle, top: box.y, bottom: box.y + box.height };
  };
  for (const edge of [...edges, ...ports]) {
    const laid = graph.edge(String(edge.from), String(edge.to));
    edge.points = upright(docked(laid.points, dock(edge.from, "out"), dock(edge.to, "in")), layers);
    edge.labelAt = laid.x === undefined ? null : { x: laid.x, y: laid.y };
  }
  return normalised(boxes, [...edges, ...ports]);
}

/** Lay boxes out in layers; the edges `bound` are not drawn, and only keep their ends in order. */
function layered(boxes, edges, ports, bound) {
  const graph = new dagre.graphlib.Graph();
  const ranker = edges.length + ports.length > 80 ? "tight-tree" : "network-simplex";
  graph.setGraph({ rankdir: "TB", nodesep: GAP, ranksep: 24, edgesep: 8, ranker });
  for (const box of boxes) graph.setNode(String(box.item), { width: box.width, height: box.height });
  for (const end of ["in", "out"]) {
    if (ports.some((edge) => edge.from === end || edge.to === end)) graph.setNode(end, { width: 1, height: 1 });
  }
  for (const edge of [...edges, ...ports]) {
    const label = edgeLabel(edge);
    const room = label && !ports.includes(edge) ? { width: textWidth(label, 12, 600) + 8, height: 16, labelpos: "c" } : {};
    graph.setEdge(String(edge.from), String(edge.to), { ...room });
  }
  for (const [from, to] of bound) if (!graph.hasEdge(from, to)) graph.setEdge(from, to, { weight: 0 });
  dagre.layout(graph);
  return graph;
}

/** List edges that keep boxes out of the way between the frame and where lines come in, or go out. */
function endsToBind(graph, boxes) {
  return ["in", "out"].flatMap((end) => {
    const at = graph.node(end);
    const beyond = at ? boxes.filter((box) => (graph.node(String(box.item)).y - at.y) * (end === "in" ? -1 : 1) > 0) : [];
    const isHidden = beyond.some((box) => Math.abs(graph.node(String(box.item)).x - at.x) < box.width / 2 + APART);
    return isHidden ? beyond.map((box) => (end === "in" ? [end, String(box.item)] : [String(box.item), end])) : [];
  });
}

/** Let a line that runs down leave a box at its bottom and enter one at its top, where the lines inside end. */
function docked(points, from, to) {
  const found = [...points];
  if (found[1].y > from.bottom) found[0] = { x: from.x, y: from.bottom };
  if (found.at(-2).y < to.top) found[found.length - 1] = { x: to.x, y: to.top };
  return found;
}

/** List the layers of boxes: those of a layer have one middle, however high they are. */
function layersOf(boxes) {
  const found = new Map();
  for (const { y, height } of boxes) {
    const middle = Math.round(y + height / 2);
    const { top, bottom } = found.get(middle) ?? { top: y, bottom: y };
    found.set(middle, { top: Math.min(top, y), bottom: Math.max(bottom, y + height) });
  }
  return [...found.values()];
}

/** Let lines go sideways between layers only: through a layer they run straight down or up, past its boxes. */
function upright(points, layers) {
  const isDown = points.at(-1).y > points[0].y;
  return points.flatMap(({ x, y }, i) => {
    const layer = layers.find(({ top, bottom }) => top - 1 < y && y < bottom + 1);
    if (!layer) return [{ x, y }];
    const [enters, leaves] = isDown ? [layer.top, layer.bottom] : [layer.bottom, layer.top];
    const ends = i === 0 ? [y, leaves] : i === points.length - 1 ? [enters, y] : [enters, leaves];
    return [...new Set(ends)].map((at) => ({ x, y: at }));
  });
}

/** Move everything so that it begins at the origin. */
function normalised(boxes, edges) {
  const xs = [...boxes.flatMap((box) => [box.x, box.x + box.width]), ...edges.flatMap((edge) => edge.points.map((p) => p.x))];
  const ys = [...boxes.flatMap((box) => [box.y, box.y + box.height]), ...edges.flatMap((edge) => edge.points.map((p) => p.y))];
  const [left, top] = [xs.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.min(a, b))];
  for (const box of boxes) { box.x -= left; box.y -= top; }
  for (const edge of edges) {
    edge.points = edge.points.map(({ x, y }) => ({ x: x - left, y: y - top }));
    if (edge.labelAt) edge.labelAt = { x: edge.labelAt.x - left, y: edge.labelAt.y - top };
  }
  return { width: xs.reduce((a, b) => Math.max(a, b)) - left, height: ys.reduce((a, b) => Math.max(a, b)) - top };
}

/** Lead the lines that enter and leave an open scope to its frame; return where they cross it. */
function led(ports, height) {
  const into = ports.filter((edge) => edge.from === "in");
  const out = ports.filter((edge) => edge.to === "out");
  for (const edge of into) edge.points.unshift({ x: edge.points[0].x, y: -PADDING - HEADER });
  for (const edge of out) edge.points.push({ x: edge.points.at(-1).x, y: height + PADDING });
  return { in: into[0]?.points[0].x, out: out[0]?.points.at(-1).x };
}

/** Put boxes without edges beside the rest where that is slim, else in rows below it. */
function inRows(boxes, width, height) {
  if (!boxes.length) return { width, height };
  const tall = boxes.reduce((sum, box) => sum + box.height + GAP, -GAP);
  if (height > width && tall <= height) return inColumns(boxes, width, height);
  const limit = Math.max(width, Math.sqrt(areaOf(boxes) * 1.8));
  let [x, y, row] = [0, height ? height + GAP : 0, 0];
  let widest = width;
  for (const box of boxes) {
    if (x && x + box.width > limit) { x = 0; y += row + GAP; row = 0; }
    box.x = x;
    box.y = y;
    x += box.width + GAP;
    row = Math.max(row, box.height);
    widest = Math.max(widest, x - GAP);
  }
  return { width: widest, height: y + row };
}

/** Put boxes without edges in columns beside the rest. */
function inColumns(boxes, width, height) {
  const limit = Math.max(height, Math.sqrt(areaOf(boxes) / 1.8), ...boxes.map((box) => box.height));
  let [x, y, widest, tallest] = [width + (width ? GAP : 0), 0, width, height];
  for (const box of boxes) {
    if (y && y + box.height > limit) { x = widest + GAP; y = 0; }
    Object.assign(box, { x, y });
    widest = Math.max(widest, x + box.width);
    tallest = Math.max(tallest, y + box.height);
    y += box.height + GAP;
  }
  return { width: widest, height: tallest };
}

function areaOf(boxes) { return boxes.reduce((sum, box) => sum + (box.width + GAP) * (box.height + GAP), 0); }

/** Join the two edges of a pair of devices to one, from the first device on; `ways` are the two. */
function bundled(edges) {
  const found = new Map();
  for (const edge of edges) {
    const one = found.get(`${edge.to} ${edge.from}`);
    if (one?.copies.size && edge.copies.size) {
      const ways = [one, edge];
      const [count, control, size] = ["count", "control", "size"].map((key) => one[key] + edge[key]);
      found.set(`${edge.to} ${edge.from}`, { ...one, ways, count, control, size, copies: new Set([...one.copies, ...edge.copies]) });
    } else {
      found.set(`${edge.from} ${edge.to}`, { ...edge });
    }
  }
  return [...found.values()];
}

/** Spell in lines what an edge copies between devices: one for each way, with an arrow where there are two. */
function edgeLines(edge) {
  return edge.ways ? edge.ways.map((way, i) => `${edge.arrows[i]} ${edgeLabel(way)}`) : [edgeLabel(edge)].filter(Boolean);
}

/** Return how wide the lines at an edge are. */
function edgeTextWidth(edge) { return Math.max(0, ...edgeLines(edge).map((line) => textWidth(line, 12, 600))); }

/** Spell what an edge copies from one device to another, "" for an edge that stays on one. */
function edgeLabel(edge) {
  if (!edge.copies.size) return "";
  const size = edge.size ? bytes(edge.size) : "";
  return edge.copies.size > 1 ? `${plural(edge.copies.size, "copy")}${size && `, ${size}`}` : size || "1 copy";
}
