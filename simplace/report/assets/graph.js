"use strict";
// The graph on the screen: boxes that open and close, pan and zoom, a walk by keyboard.

const FIRST_BOXES = [45, 28, 14]; // that show before anything is opened: as many as can be read at once
const ZOOM = 1.25;
const READABLE = 0.6; // the scale below which texts are no use
const LARGEST_SCALE = 4;
const NEIGHBOURS = 200; // edges of the selected node that are drawn

class GraphView {
  /** Show graphs in an `<svg>`; `onSelect(node)`, `onStep(by)` and `onSay(text)` are told what the user did. */
  constructor(svg, { onSelect, onStep, onSay }) {
    Object.assign(this, { svg, onSelect, onStep, onSay });
    this.viewport = draw("g", { id: "viewport" });
    svg.append(draw("defs", {}, arrow("arrow"), arrow("arrow-copy"), arrow("arrow-near")), this.viewport);
    this.at = { x: 0, y: 0, scale: 1 };
    this.selected = -1;
    this.focused = -1;
    this.marks = new Marks();
    this.#listen();
  }

  /** Show a program's tree, closed except for the first scopes. */
  show(program, tree, colouring, showControl) {
    Object.assign(this, { program, tree, colouring });
    this.marks.count(tree, this.marks.nodes);
    this.layout = new Layout(program, tree, { showControl, subline: (item) => this.#subline(item) });
    this.focused = -1;
    this.reset();
  }

  /** Mark the nodes that a search found, and the closed boxes that hold some. */
  mark(nodes) {
    this.marks.count(this.tree, nodes);
    this.#markBoxes();
  }

  #markBoxes() {
    this.viewport.querySelector(":scope > .pills")?.remove();
    this.viewport.append(this.marks.on(this.elements, this.places));
  }

  recolour(colouring) {
    this.colouring = colouring;
    this.layout.known.clear();
    this.render();
  }

  setControl(shown) {
    this.layout.showControl = shown;
    this.layout.known.clear();
    this.render();
  }

  /** Open as many scopes as leave all of the graph readable at once, the largest first. */
  reset() {
    const { width, height } = this.svg.getBoundingClientRect();
    this.layout.known.clear();
    for (const boxes of FIRST_BOXES) {
      const open = this.tree.firstOpened(boxes);
      if (this.open?.size === open.size && this.layout.known.has(0)) continue; // the larger number opened no more
      this.open = open;
      this.layout.known.clear();
      const size = this.layout.inside(0, this.open);
      if (size.width * READABLE < width && size.height * READABLE < height) break;
    }
    this.render();
    this.fit(READABLE);
  }

  /** Open or close a scope; what the user looks at stays where it is. */
  toggle(item) {
    const before = this.places.get(item);
    const isOpen = this.open.delete(item);
    if (!isOpen) this.open.add(item);
    this.layout.forget(item);
    this.focused = item;
    this.render();
    const after = this.places.get(item);
    this.at.x += (before.x - after.x) * this.at.scale;
    this.at.y += (before.y - after.y) * this.at.scale;
    this.#move();
    this.elements.get(item).focus({ preventScroll: true });
    this.#bringIntoView(item);
    const label = visible(this.tree.label[item]);
    this.onSay(isOpen ? `${label} closed.` : `${label} open: ${plural(this.tree.parts[item].length, "box")}.`);
  }

  /** Open all that hides a node, select it and bring it to the middle. */
  reveal(node) {
    const item = this.tree.itemOf[node];
    for (const at of this.tree.above(item)) {
      if (!this.open.has(at)) { this.open.add(at); this.layout.forget(at); }
    }
    this.selected = node;
    this.focused = item;
    this.render();
    this.at.scale = Math.min(Math.max(this.at.scale, 0.8), 1.5);
    this.#centre(item);
  }

  select(node) {
    this.selected = node;
    this.render();
  }

  focus() { this.elements.get(this.focused)?.focus({ preventScroll: true }); }

  /** Show all of the graph, but no smaller than `least`: then its top, in the middle. */
  fit(least = 0) {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width || !height) return;
    const whole = Math.min((width - 40) / Math.max(1, this.size.width), (height - 40) / Math.max(1, this.size.height), 1.25);
    const scale = Math.max(whole, least);
    this.at = { scale, x: (width - this.size.width * scale) / 2, y: Math.max(20, (height - this.size.height * scale) / 2) };
    this.screen = { width, height };
    this.#move();
  }

  zoom(factor, x, y) {
    const box = this.svg.getBoundingClientRect();
    const [px, py] = [x ?? box.width / 2, y ?? box.height / 2];
    const scale = Math.min(Math.max(this.at.scale * factor, 0.02), LARGEST_SCALE);
    const grown = scale / this.at.scale;
    this.at = { scale, x: px - (px - this.at.x) * grown, y: py - (py - this.at.y) * grown };
    this.#move();
  }

  render() {
    const root = this.layout.inside(0, this.open);
    this.size = { width: root.width, height: root.height };
    this.places = new Map();
    this.elements = new Map();
    this.visibleItems = [];
    this.near = this.selected < 0 ? new Set() : this.#neighbours();
    const drawn = [...this.#inside(root, 0, 0), ...this.#nearEdges()];
    this.viewport.replaceChildren(...drawn);
    if (this.marks.nodes.length) this.#markBoxes();
    if (!this.elements.has(this.focused)) this.focused = this.visibleItems[0] ?? -1;
    this.elements.get(this.focused)?.setAttribute("tabindex", "0");
    if (!this.visibleItems.length) this.viewport.append(draw("text", { x: 0, y: 16 }, "This graph has no nodes."));
  }

  #inside(layout, left, top) {
    const boxes = [...layout.boxes].sort((one, other) => one.y - other.y || one.x - other.x);
    const elements = boxes.map((box) => this.#box(box, left, top));
    const lines = [...layout.edges.map((edge) => this.#edge(edge, left, top)), ...layout.ports.map((edge) => this.#edge(edge, left, top))];
    const labels = layout.edges.flatMap((edge) => edgeText(edge, left, top));
    return [...elements.map(([box]) => box), ...lines, ...labels, ...elements.flatMap(([, inner]) => inner)];
  }

  #box(box, left, top) {
    const [x, y] = [left + box.x, top + box.y];
    this.places.set(box.item, { x, y, width: box.width, height: box.height });
    this.visibleItems.push(box.item);
    const isScope = this.tree.isScope(box.item);
    const element = isScope ? this.#scope(box, x, y) : this.#leaf(box, x, y);
    this.elements.set(box.item, element);
    if (!box.inner) return [element, []];
    return [element, this.#inside(box.inner, x + (box.width - box.inner.width) / 2, y + HEADER + PADDING)];
  }

  #leaf(box, x, y) {
    const node = this.tree.leaf[box.item];
    const sign = this.colouring.node(node);
    const device = this.program.deviceSign(this.program.device(node));
    const corner = device.isHost === false ? 9 : 1;
    const state = `${node === this.selected ? " selected" : ""}${this.near.has(node) ? " beside" : ""}`;
    const more = sign === device ? "" : `, ${sign.label}`;
    const label = `${visible(this.program.name(node))}, ${box.small}, on ${device.label}${more}`;
    return draw("g", { ...this.#item(box, label), class: `box ${sign.style}${state}`, transform: `translate(${x},${y})` },
      draw("rect", { class: "body", width: box.width, height: box.height, rx: corner }),
      draw("rect", { class: "tag", x: 4, y: 4, width: TAG - 6, height: box.height - 8, rx: Math.min(corner, 5) }),
      draw("text", { class: "letters", x: 4 + (TAG - 6) / 2, y: box.height / 2 + 4 }, sign.letters),
      draw("text", { x: TAG + 4, y: 17 }, fit(box.label, box.width - TAG - 10)),
      draw("text", { class: "op", x: TAG + 4, y: 32 }, fit(box.small, box.width - TAG - 10, 11)));
  }

  #scope(box, x, y) {
    const signs = this.colouring.scope(this.tree, box.item);
    const spread = signs.map(([sign, count]) => `${count.toLocaleString("en")} ${sign.label}`).join(", ");
    const label = `${box.label}, ${this.#subline(box.item)}: ${spread}`;
    const attributes = { ...this.#item(box, label), class: `box scope${box.inner ? " open" : ""}`, transform: `translate(${x},${y})` };
    if (box.inner) {
      return draw("g", attributes,
        draw("rect", { class: "body", width: box.width, height: box.height, rx: 4 }),
        draw("text", { x: 12, y: 18 }, `− ${fit(box.label, box.width - 30)}`));
    }
    return draw("g", attributes,
      draw("rect", { class: "back", x: 4, y: -4, width: box.width, height: box.height, rx: 4 }),
      draw("rect", { class: "body", width: box.width, height: box.height, rx: 4 }),
      draw("text", { x: 10, y: 17 }, `+ ${fit(box.label, box.width - 30)}`),
      draw("text", { class: "sub", x: 10, y: 31 }, fit(box.small, box.width - 18, 11)),
      ...bar(signs, box.width - 16, 36));
  }

  #item(box, label) {
    const expanded = this.tree.isScope(box.item) ? { "aria-expanded": String(Boolean(box.inner)) } : {};
    return {
      role: "treeitem", tabindex: "-1", "data-item": box.item, "aria-label": label, "aria-level": this.tree.depth[box.item],
      "aria-selected": String(this.tree.leaf[box.item] >= 0 && this.tree.leaf[box.item] === this.selected), ...expanded,
    };
  }

  #subline(item) {
    const time = this.colouring.mode === "cost" ? ` · ${duration(this.colouring.time(this.tree, item))}` : "";
    return (this.tree.isScope(item) ? plural(this.tree.size(item), "node") : this.program.op(this.tree.leaf[item])) + time;
  }

  #edge(edge, left, top) {
    const isPort = edge.from === "in" || edge.to === "out";
    const points = edge.points.map(({ x, y }) => ({ x: x + left, y: y + top }));
    const isCopy = edge.copies.size > 0;
    const classes = ["edge", isCopy && "copy", edge.control === edge.count && "control", isPort && "outward"].filter(Boolean);
    const width = Math.min(1 + Math.log2(edge.count) * 0.5 + (isCopy ? 1 : 0), 6).toFixed(1);
    const head = isPort && edge.to === "out" ? {} : { "marker-end": `url(#${isCopy ? "arrow-copy" : "arrow"})` };
    const title = `${plural(edge.count, "edge")}${edge.control ? `, ${edge.control} of them control` : ""}${isCopy ? `; ${plural(edge.copies.size, "copy")} between devices, ${bytes(edge.size)}` : ""}`;
    return draw("path", { class: classes.join(" "), d: curve(points), "stroke-width": width, ...head }, draw("title", {}, title));
  }

  #neighbours() {
    const { raw } = this.program;
    const before = [...this.program.inputs(this.selected)].map((edge) => raw.edges.src[edge]);
    const after = [...this.program.outputs(this.selected)].map((edge) => raw.edges.dst[edge]);
    return new Set([...before, ...after]);
  }

  /** Draw the edges of the selected node, each to the box that shows its other end. */
  #nearEdges() {
    const here = this.selected < 0 ? undefined : this.places.get(this.tree.itemOf[this.selected]);
    if (!here) return [];
    const { program } = this;
    const ends = [
      ...[...program.inputs(this.selected)].map((edge) => [program.raw.edges.src[edge], true]),
      ...[...program.outputs(this.selected)].map((edge) => [program.raw.edges.dst[edge], false]),
    ];
    const drawn = new Map();
    for (const [node, isInput] of ends.slice(0, NEIGHBOURS)) {
      const item = this.#shownFor(node);
      const there = this.places.get(item);
      if (there && item !== this.tree.itemOf[this.selected]) drawn.set(`${item} ${isInput}`, isInput ? link(there, here) : link(here, there));
    }
    return [...drawn.values()].map((d) => draw("path", { class: "edge near", d, "stroke-width": 2, "marker-end": "url(#arrow-near)" }));
  }

  /** Return the box that shows a node: its own, or that of the outermost closed scope around it. */
  #shownFor(node) {
    const item = this.tree.itemOf[node];
    return [item, ...this.tree.above(item)].reverse().find((at) => !this.open.has(at)) ?? item;
  }

  #move() {
    const { x, y, scale } = this.at;
    this.viewport.setAttribute("transform", `translate(${x.toFixed(2)},${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
  }

  #centre(item) {
    const box = this.svg.getBoundingClientRect();
    const { x, y, width, height } = this.places.get(item);
    this.at.x = box.width / 2 - (x + width / 2) * this.at.scale;
    this.at.y = box.height / 2 - (y + height / 2) * this.at.scale;
    this.screen = { width: box.width, height: box.height };
    this.#move();
  }

  /** Pan as little as needed to show a box, or its top left corner where it is larger than the screen. */
  #bringIntoView(item) {
    const screen = this.svg.getBoundingClientRect();
    const place = this.places.get(item);
    const { scale } = this.at;
    for (const [axis, room, length] of [["x", screen.width, place.width], ["y", screen.height, place.height]]) {
      const start = place[axis] * scale + this.at[axis];
      if (start + length * scale > room - 10) this.at[axis] -= start + length * scale - room + 10;
      if (place[axis] * scale + this.at[axis] < 10) this.at[axis] = 10 - place[axis] * scale;
    }
    this.#move();
  }

  /** Keep the middle in the middle where the panel beside the graph opens or the window changes. */
  #resized({ width, height }) {
    if (this.screen?.width && width) {
      this.at.x += (width - this.screen.width) / 2;
      this.at.y += (height - this.screen.height) / 2;
      this.#move();
    }
    if (width) this.screen = { width, height };
  }

  #listen() {
    new ResizeObserver(([entry]) => this.#resized(entry.contentRect)).observe(this.svg);
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.svg.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.#startPan(event));
    this.svg.addEventListener("pointermove", (event) => this.#pan(event));
    this.svg.addEventListener("pointerup", (event) => this.#endPan(event));
    this.svg.addEventListener("pointercancel", () => { this.panning = null; });
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    // A browser would make an <svg> that listens to focus a stop of its own for the Tab key.
    this.svg.parentElement.addEventListener("focusin", (event) => this.#focusMoved(event));
    this.svg.addEventListener("pointerover", (event) => this.#hint(event.target.closest(".box")));
  }

  /** Give a box its tooltip once the pointer is on it: thousands of texts less to draw. */
  #hint(box) {
    if (!box || box.querySelector(":scope > title")) return;
    const act = { true: ". Click to close.", false: ". Click to open." }[box.getAttribute("aria-expanded")] ?? "";
    box.append(draw("title", {}, box.getAttribute("aria-label") + act));
  }

  #startPan(event) {
    if (event.button !== 0) return;
    this.panning = { x: event.clientX, y: event.clientY, moved: false, on: event.target.closest(".box") };
    this.svg.setPointerCapture(event.pointerId);
  }

  #pan(event) {
    if (!this.panning) return;
    const [dx, dy] = [event.clientX - this.panning.x, event.clientY - this.panning.y];
    if (!this.panning.moved && Math.hypot(dx, dy) < 4) return;
    this.svg.classList.add("panning");
    this.at.x += dx;
    this.at.y += dy;
    this.panning = { ...this.panning, x: event.clientX, y: event.clientY, moved: true };
    this.#move();
  }

  #endPan() {
    const { panning } = this;
    this.panning = null;
    this.svg.classList.remove("panning");
    if (!panning || panning.moved || !panning.on) return;
    this.activate(Number(panning.on.dataset.item));
  }

  /** Do what a click does: open or close a scope, select a node. */
  activate(item) {
    this.focused = item;
    if (this.tree.isScope(item)) { this.toggle(item); return; }
    this.select(this.tree.leaf[item]);
    this.elements.get(item).focus({ preventScroll: true });
    this.onSelect(this.tree.leaf[item]);
  }

  #focusMoved(event) {
    const item = Number(event.target.closest(".box")?.dataset.item ?? -1);
    if (item < 0) return;
    this.elements.get(this.focused)?.setAttribute("tabindex", "-1");
    this.focused = item;
    event.target.setAttribute("tabindex", "0");
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = this.#keys()[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #keys() {
    const item = this.focused;
    const at = this.visibleItems.indexOf(item);
    const isOpen = this.open.has(item);
    return {
      ArrowDown: () => this.#walk(this.visibleItems[at + 1]),
      ArrowUp: () => this.#walk(this.visibleItems[at - 1]),
      ArrowRight: () => (isOpen ? this.#walk(this.visibleItems[at + 1]) : this.tree.isScope(item) && this.toggle(item)),
      ArrowLeft: () => (isOpen ? this.toggle(item) : this.#walk(this.tree.parent[item])),
      Home: () => this.#walk(this.visibleItems[0]),
      End: () => this.#walk(this.visibleItems.at(-1)),
      Enter: () => this.activate(item),
      " ": () => this.activate(item),
      "+": () => this.zoom(ZOOM),
      "=": () => this.zoom(ZOOM),
      "-": () => this.zoom(1 / ZOOM),
      0: () => this.fit(),
      n: () => this.onStep(1),
      p: () => this.onStep(-1),
    };
  }

  #walk(item) {
    if (!this.elements.has(item)) return;
    this.elements.get(item).focus({ preventScroll: true });
    this.#bringIntoView(item);
  }
}

function arrow(id) {
  return draw("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto", markerUnits: "userSpaceOnUse" },
    draw("path", { d: "M0,0.5 L8,4 L0,7.5 Z" }));
}

/** Show how many nodes of a scope have each sign: widths are shares, letters where there is room. */
function bar(signs, width, y) {
  const total = signs.reduce((sum, [, count]) => sum + count, 0);
  let x = 8;
  return signs.flatMap(([sign, count]) => {
    const part = (width * count) / total;
    const rect = draw("rect", { class: `bar ${sign.style}`, x, y, width: Math.max(part, 1), height: 13 });
    const letters = part > textWidth(sign.letters, 10) + 4 ? [draw("text", { class: "letters", x: x + part / 2, y: y + 10 }, sign.letters)] : [];
    x += part;
    return [rect, ...letters];
  });
}

function edgeText(edge, left, top) {
  const label = edgeLabel(edge);
  if (!label || !edge.labelAt) return [];
  const [x, y, width] = [edge.labelAt.x + left, edge.labelAt.y + top, textWidth(label, 11) + 8];
  return [
    draw("rect", { class: "edge-paper", x: x - width / 2, y: y - 7, width, height: 14, rx: 3 }),
    draw("text", { class: "edge-label", x, y: y + 4 }, label),
  ];
}

/** Run a smooth line through points, upright at each of them. */
function curve(points) {
  const bends = points.slice(1).map(({ x, y }, i) => {
    const middle = (points[i].y + y) / 2;
    return `C${points[i].x},${middle} ${x},${middle} ${x},${y}`;
  });
  return `M${points[0].x},${points[0].y} ${bends.join(" ")}`;
}

/** Run a line from the bottom of one box to the top of another. */
function link(from, to) {
  const [x, y] = [from.x + from.width / 2, from.y + from.height];
  const [tx, ty] = [to.x + to.width / 2, to.y];
  const bend = Math.max(30, Math.abs(ty - y) / 2);
  return `M${x},${y} C${x},${y + bend} ${tx},${ty - bend} ${tx},${ty}`;
}
