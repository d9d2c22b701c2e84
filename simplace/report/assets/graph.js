"use strict";
// The graph on the screen: boxes that open and close, all of it or the inside of one scope.

const FIRST_BOXES = [45, 28, 14]; // that show before anything is opened: as many as can be read at once
const READABLE = 0.76; // the least scale of Fit: texts of 12 pixels keep nine
const LARGEST_SCALE = 4;
const NEIGHBOURS = 200; // edges of the selected node that are drawn

class GraphView {
  /**
   * Show graphs in an `<svg>`. What the user does is told: `onSelect(node)`, `onCopies(numbers, title)`,
   * `onCollective(volume)`, `onSay(text)`, and `onChange()` after any change of what is shown.
   */
  constructor(svg, minimap, { onSelect, onCopies, onCollective, onChange, onSay }) {
    Object.assign(this, { svg, minimap, onSelect, onCopies, onCollective, onChange, onSay });
    this.viewport = draw("g", { id: "viewport" });
    svg.append(draw("defs", {}, arrow("arrow"), arrow("arrow-copy"), arrow("arrow-near"), arrow("arrow-conflict")), this.viewport);
    this.at = { x: 0, y: 0, scale: 1 };
    this.root = 0; // the item whose inside is shown
    this.selected = -1;
    this.focused = -1;
    this.paper = null; // its size while the graph is printed
    this.marks = new Marks();
    new ResizeObserver(([entry]) => this.#resized(entry.contentRect)).observe(svg);
  }

  /** Show a program's tree, in steps, closed except for the first scopes; what is known of one that shows already stays. */
  *show(program, tree, colouring, showControl) {
    const isShown = this.tree === tree && this.colouring === colouring && this.layout.showControl === showControl;
    Object.assign(this, { program, tree, colouring });
    this.marks.count(tree, this.marks.nodes);
    const { width, height } = this.#room();
    const aspect = width && height ? width / height : 1.5;
    if (!isShown || this.layout.aspect !== aspect) {
      const badges = (item) => barWidth(this.colouring.scope(this.tree, item));
      this.layout = new Layout(program, tree, { showControl, aspect, badges, subline: (item) => this.#subline(item) });
    }
    this.focused = -1;
    this.open = null;
    if (program.isLarge) yield* this.layout.sumUpFirst();
    yield* this.#showFirst();
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

  /** Draw again, in steps, in other colours: texts of boxes may change, too. */
  *recolour(colouring) {
    this.colouring = colouring;
    this.layout.known.clear();
    yield* this.#layOut(this.root, this.open);
    this.render();
  }

  /** Draw again, in steps, with the control edges or without. */
  *setControl(shown) {
    this.layout.showControl = shown;
    this.layout.clear();
    yield* this.#layOut(this.root, this.open);
    this.render();
  }

  /** Show all of the graph, and open as many scopes as leave it readable at once. */
  reset() { this.#layOutThen(() => this.#showFirst(), () => {}); }

  *#showFirst() {
    const open = yield* this.#firstOpened();
    this.root = 0;
    this.open = open;
    this.first = [...open].join();
    this.render();
    this.fit();
    this.onChange();
  }

  /**
   * Choose, in steps, the scopes to open: the parts of a step stay closed, a graph without them opens as far as it can
   * be read.
   */
  *#firstOpened() {
    if (this.program.refused.size) return this.#aroundConflict();
    const { tree } = this;
    const fits = (open) => this.#fits(open);
    if (tree.hasPlaces && this.program.hasParts) return yield* tree.openedPlaces(fits);
    let open = null;
    for (const boxes of FIRST_BOXES) {
      open = yield* tree.firstOpened(boxes);
      if (yield* fits(open)) return open;
    }
    return tree.hasPlaces ? yield* tree.openedPlaces(fits) : open;
  }

  /** Return the size of what the graph is laid out for: the screen, or paper. */
  #room() { return this.paper ?? this.svg.getBoundingClientRect(); }

  /** Open what hides the nodes over which a graph is refused. */
  #aroundConflict() {
    const shown = [...this.program.refused].slice(0, FIRST_BOXES[0]);
    return new Set(shown.flatMap((node) => this.tree.above(this.tree.leafOf(node))));
  }

  /** Say, after some steps, whether all of the graph can be read at once with those scopes open. */
  *#fits(open) {
    const { width, height } = this.#room();
    if (!width) return true; // it is behind another tab
    yield* this.#layOut(0, open);
    this.layout.use(open); // what was done between two steps may have used it otherwise
    const size = this.layout.inside(0);
    return size.width * READABLE + 2 * BORDER < width && size.height * READABLE + 2 * BORDER < height;
  }

  /** Say whether the scopes are open that were at first. */
  get isAsAtFirst() { return !this.root && [...this.open].join() === this.first; }

  /** Open scopes by their numbers, as a link names them, in steps, and show the inside of `root`. */
  *restore(open, root) {
    const isScope = (item) => item > 0 && item < this.tree.parent.length && this.tree.isScope(item);
    const [shown, inside] = [new Set(open.filter(isScope)), isScope(root) ? root : 0];
    yield* this.#layOut(inside, shown);
    [this.open, this.root] = [shown, inside];
    this.render();
    this.fit();
  }

  /** Lay out, in steps, the inside of an item of a large graph with these scopes open. */
  *#layOut(root, open) {
    if (!this.program.isLarge) return;
    this.layout.use(open);
    yield* this.layout.layOut(root);
  }

  /** Open a scope and fit the screen to it, or close it where it is. */
  toggle(item) {
    const open = () => {
      const found = new Set(this.open);
      if (!found.delete(item)) found.add(item);
      return found;
    };
    this.#layOutThen(() => this.#layOut(this.root, open()), () => this.#showToggled(item));
  }

  /** Do what `steps` makes, then `act`, where this graph still shows once its turn comes. */
  #layOutThen(steps, act) {
    const { tree } = this;
    const isShown = () => this.tree === tree;
    const ifShown = function* () { if (isShown()) yield* steps(); };
    doInSteps(ifShown(), () => { if (isShown()) act(); });
  }

  #showToggled(item) {
    const before = this.places.get(item);
    const isOpen = this.open.delete(item); // else it is opened
    if (!isOpen) this.open.add(item);
    this.focused = item;
    this.render();
    const after = this.places.get(item);
    if (isOpen) {
      this.at.x += (before.x - after.x) * this.at.scale;
      this.at.y += (before.y - after.y) * this.at.scale;
      this.bringIntoView(item);
    } else this.#fitTo(after);
    this.elements.get(item).focus({ preventScroll: true });
    const label = visible(this.tree.label[item]);
    this.onSay(isOpen ? `${label} closed.` : `${label} open: ${plural(this.tree.partsOf(item).length, "box")}.`);
    this.onChange();
  }

  /** Show the inside of a scope alone, then `act`. */
  enter(item, act = () => {}) {
    if (item !== 0 && !this.tree.isScope(item)) return;
    const open = () => (item ? new Set(this.open).add(item) : this.open);
    this.#layOutThen(() => this.#layOut(item, open()), () => { this.#showInside(item); act(); });
  }

  #showInside(item) {
    this.root = item;
    if (item) this.open.add(item);
    this.focused = -1;
    this.render();
    this.fit();
    this.focus();
    this.onSay(item ? `Inside ${visible(this.tree.label[item])}: ${plural(this.tree.partsOf(item).length, "box")}.` : "All of the graph.");
    this.onChange();
  }

  /** Show what is around the scope that is shown. */
  leave() {
    if (!this.root) return;
    const item = this.root;
    this.enter(this.tree.parent[item], () => {
      if (this.elements.has(item)) { this.elements.get(item).focus({ preventScroll: true }); this.bringIntoView(item); }
    });
  }

  /** Open all that hides a node, in steps, select it and bring it to the middle. */
  *reveal(node) {
    const { tree } = this;
    const item = yield* tree.makeLeaf(node);
    const above = tree.above(item);
    const root = above.includes(this.root) ? this.root : 0;
    const open = new Set([...this.open, ...above]);
    yield* this.#layOut(root, open);
    [this.open, this.root] = [open, root];
    this.selected = node;
    this.focused = item;
    this.render();
    if (this.program.isLarge) yield;
    this.at.scale = Math.min(Math.max(this.at.scale, 0.8), 1.5);
    this.#centre(item);
    this.onChange();
  }

  select(node) {
    this.selected = node;
    this.render();
    this.onChange();
  }

  focus() { this.elements.get(this.focused)?.focus({ preventScroll: true }); }

  /** Show all of what is shown, but no smaller than can be read: then its beginning. */
  fit() { this.#fitTo({ x: 0, y: 0, width: this.size.width, height: this.size.height }); }

  #fitTo(place) {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width || !height) return;
    const room = 2 * BORDER + 8;
    const whole = Math.min((width - room) / Math.max(1, place.width), (height - room) / Math.max(1, place.height), 1.25);
    const scale = Math.max(whole, READABLE);
    const start = (screen, from, length) => Math.max(BORDER + 4, (screen - length * scale) / 2) - from * scale;
    this.at = { scale, x: start(width, place.x, place.width), y: start(height, place.y, place.height) };
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

  moveBy(dx, dy) {
    this.at.x += dx;
    this.at.y += dy;
    this.#move();
  }

  render() {
    this.layout.use(this.open);
    const root = this.layout.inside(this.root);
    this.shown = root;
    this.wires = [];
    this.size = { width: root.width, height: root.height };
    this.places = new Map();
    this.elements = new Map();
    this.visibleItems = [];
    this.near = this.selected < 0 ? new Set() : this.#neighbours();
    this.blocks = [];
    const { frames, lines, boxes, labels } = this.#inside(root, 0, 0);
    this.viewport.replaceChildren(...frames, ...lines, ...this.#conflictEdges(), ...this.#nearEdges(), ...boxes, ...labels, ...this.#conflictLabels());
    if (this.marks.nodes.length) this.#markBoxes();
    if (!this.elements.has(this.focused)) this.focused = this.visibleItems[0] ?? -1;
    this.elements.get(this.focused)?.setAttribute("tabindex", "0");
    if (!this.visibleItems.length) this.viewport.append(draw("text", { x: 0, y: 16 }, "This graph has no nodes."));
    this.minimap.draw(this);
  }

  /** Draw in four layers: open scopes, lines, the boxes that no line may cross, and what is written on lines and frames. */
  #inside(layout, left, top) {
    const drawn = { frames: [], lines: [], boxes: [], labels: [] };
    const add = (layers) => { for (const [name, elements] of Object.entries(layers)) for (const each of elements) drawn[name].push(each); };
    add({ lines: [...layout.edges, ...layout.ports].map((edge) => this.#edge(edge, left, top)) });
    for (const box of [...layout.boxes].sort((one, other) => one.y - other.y || one.x - other.x)) {
      const [x, y] = [left + box.x, top + box.y];
      add({ [box.inner ? "frames" : "boxes"]: [this.#box(box, x, y)] });
      if (!box.inner) continue;
      add(this.#inside(box.inner, x + (box.width - box.inner.width) / 2, y + HEADER + PADDING));
      add({ labels: [this.#heading(box, x, y)] });
    }
    add({ boxes: layout.bars.flatMap((bar) => this.#bar(bar, left, top)), labels: layout.edges.flatMap((edge) => this.#label(edge, left, top)) });
    return drawn;
  }

  #box(box, x, y) {
    const place = { x, y, width: box.width, height: box.height };
    this.places.set(box.item, place);
    this.visibleItems.push(box.item);
    if (!box.inner) this.blocks.push(place);
    const element = this.tree.isScope(box.item) ? this.#scope(box, x, y) : this.#leaf(box, x, y);
    this.elements.set(box.item, element);
    return element;
  }

  #leaf(box, x, y) {
    const node = this.tree.leaf[box.item];
    const sign = this.colouring.node(node);
    const device = this.program.deviceSign(this.program.device(node));
    const corner = device.isHost === false ? 9 : 1;
    const isRefused = this.program.refused.has(node);
    const state = `${node === this.selected ? " selected" : ""}${this.near.has(node) ? " beside" : ""}${isRefused ? " refused" : ""}`;
    const more = sign === device ? "" : `, ${sign.label}`;
    const label = `${visible(this.program.name(node))}, ${box.small}, ${device === NO_DEVICE ? "not placed" : `on ${device.label}`}${more}${isRefused ? ", part of the conflict" : ""}`;
    return draw("g", { ...this.#item(box, label), class: `box ${sign.style}${state}`, transform: `translate(${x},${y})` },
      draw("rect", { class: "body", width: box.width, height: box.height, rx: corner }),
      draw("rect", { class: "tag", x: 4, y: 4, width: TAG - 6, height: box.height - 8, rx: Math.min(corner, 5) }),
      draw("text", { class: "letters", x: 4 + (TAG - 6) / 2, y: box.height / 2 + 4 }, sign.letters),
      draw("text", { x: TAG + 4, y: 17 }, fit(box.label, box.width - TAG - 10)),
      draw("text", { class: "op", x: TAG + 4, y: 32 }, fitStart(box.small, box.width - TAG - 8)));
  }

  #scope(box, x, y) {
    const signs = this.colouring.scope(this.tree, box.item);
    const [[sign]] = signs;
    const isOne = signs.length === 1;
    const spread = signs.map(([each, count]) => `${count.toLocaleString("en")} ${each.label}`).join(", ");
    const label = `${box.label}, ${this.#subline(box.item)}: ${spread}`;
    const classes = ["box", "scope", box.inner && "open", isOne && `one ${sign.style}`].filter(Boolean).join(" ");
    const attributes = { ...this.#item(box, label), class: classes, transform: `translate(${x},${y})` };
    const into = draw("g", { class: "into", "data-item": box.item, "aria-hidden": "true", transform: `translate(${box.width - 24},0)` },
      draw("rect", { width: 24, height: 24 }), draw("text", { x: 6, y: 17 }, "⤢"), draw("title", {}, "Show only its inside (i)"));
    if (box.inner) return draw("g", attributes, draw("rect", { class: "body", width: box.width, height: box.height, rx: 4 }), into);
    const start = isOne ? TAG + 4 : 10;
    return draw("g", attributes,
      draw("rect", { class: "back", x: 4, y: -4, width: box.width, height: box.height, rx: 4 }),
      draw("rect", { class: "body", width: box.width, height: box.height, rx: 4 }),
      ...(isOne ? [draw("rect", { class: "tag", x: 4, y: 4, width: TAG - 6, height: box.height - 8, rx: 4 }),
        draw("text", { class: "letters", x: 4 + (TAG - 6) / 2, y: box.height / 2 + 4 }, sign.letters)] : bar(signs, box.width - BAR_SIDES, 34)),
      draw("text", { x: start, y: isOne ? 20 : 15 }, `+ ${fit(box.label, box.width - start - 38)}`),
      draw("text", { class: "sub", x: start, y: isOne ? 38 : 29 }, fitStart(box.small, box.width - start - 8)),
      into);
  }

  /** Draw the title of an open scope, on paper: it stands above the lines that enter the scope. */
  #heading(box, x, y) {
    const isPlace = this.tree.isPlace(box.item);
    const signs = this.colouring.scope(this.tree, box.item);
    const title = `− ${fit(box.label, box.width - 54)}`;
    const end = 12 + textWidth(title, 12, isPlace ? 600 : 400);
    const detail = this.tree.detail[box.item];
    const shown = detail && end + 54 < box.width - 30 ? fitStart(detail, box.width - 48 - end) : "";
    const width = (shown ? end + 14 + textWidth(shown) : end) - 6;
    this.blocks.push({ x: x + 9, y: y + 6, width, height: 16 });
    return draw("g", { class: `heading${signs.length === 1 ? ` one ${signs[0][0].style}` : ""}`, "aria-hidden": "true", transform: `translate(${x},${y})` },
      draw("rect", { x: 9, y: 6, width, height: 16, rx: 3 }),
      draw("text", { class: isPlace ? "place" : "", x: 12, y: 18 }, title),
      shown && draw("text", { class: "sub", x: end + 14, y: 18 }, shown));
  }

  #item(box, label) {
    const expanded = this.tree.isScope(box.item) ? { "aria-expanded": String(Boolean(box.inner)) } : {};
    return {
      role: "treeitem", tabindex: "-1", "data-item": box.item, "aria-label": label, "aria-level": this.tree.depth[box.item],
      "aria-selected": String(this.tree.leaf[box.item] >= 0 && this.tree.leaf[box.item] === this.selected), ...expanded,
    };
  }

  #subline(item) {
    const time = this.colouring.mode === "cost" ? ` · ${duration(this.colouring.time(this.tree, item))}${plusMinus(this.colouring.error(this.tree, item))}` : "";
    if (!this.tree.isScope(item)) return this.#describeNode(this.tree.leaf[item]) + time;
    if (this.tree.isPlace(item) && this.tree.detail[item]) return this.tree.detail[item] + time;
    const what = this.tree.detail[item] || (this.tree.isRun[item] ? this.#listOps(item) : "");
    return `${plural(this.tree.size(item), "node")}${what && ` · ${what}`}${time}`;
  }

  #describeNode(node) {
    const count = this.program.compiled(node);
    const asked = this.program.refused.has(node) ? this.program.column("requested", node) : "";
    return `${count ? `XLA: ${plural(count, "op")} · ` : ""}${this.program.op(node)}${asked && ` · requests ${asked}`}`;
  }

  /** Spell the two most frequent ops of an item. */
  #listOps(item) {
    const { op } = this.program.raw.nodes;
    const counts = new Map();
    for (const node of this.tree.nodes(item)) counts.set(op[node], (counts.get(op[node]) ?? 0) + 1);
    const most = [...counts].sort(([, one], [, other]) => other - one);
    const said = most.slice(0, 2).map(([each, count]) => this.program.text(each) + (count > 1 ? ` ×${count}` : ""));
    return said.join(", ") + (most.length > 2 ? ", …" : "");
  }

  #edge(edge, left, top) {
    const isPort = edge.from === "in" || edge.to === "out";
    const points = edge.points.map(({ x, y }) => ({ x: x + left, y: y + top }));
    const isCopy = edge.copies.size > 0;
    const classes = ["edge", isCopy && "copy", edge.control === edge.count && "control", isPort && "outward"].filter(Boolean);
    const mark = `url(#${isCopy ? "arrow-copy" : "arrow"})`;
    const head = isPort && edge.to === "out" ? {} : { "marker-end": mark, ...(edge.ways && { "marker-start": mark }) };
    const title = `${plural(edge.count, "edge")}${edge.control ? `, ${edge.control} of them control` : ""}${isCopy ? `; ${plural(edge.copies.size, "copy")} between devices, ${bytes(edge.size)}. Click to follow.` : ""}`;
    const d = edge.isStraight ? polyline(points) : curve(points);
    const line = draw("path", { class: classes.join(" "), d, "stroke-width": lineWidth(edge), ...head }, draw("title", {}, title));
    if (!isCopy) return line;
    this.wires.push(edge);
    return draw("g", { class: "wire", "data-wire": this.wires.length - 1 },
      draw("path", { class: "grip", d }, draw("title", {}, title)), line);
  }

  #label(edge, left, top) {
    const text = edgeText(edge, left, top);
    return text.length ? [draw("g", { class: "wire", "data-wire": this.wires.indexOf(edge) }, ...text)] : [];
  }

  /** Draw collectives as one bar below the devices that take part. */
  #bar(bar, left, top) {
    const arms = bar.arms.map((arm) => draw("path", {
      class: "edge copy", d: polyline(arm.points.map(({ x, y }) => ({ x: x + left, y: y + top }))),
      "stroke-width": 1.6, "marker-start": "url(#arrow-copy)", "marker-end": "url(#arrow-copy)",
    }));
    const number = this.shown.bars.indexOf(bar);
    this.blocks.push({ x: left + bar.x, y: top + bar.y, width: bar.width, height: bar.height });
    return [...arms, draw("g", { class: "volume", "data-volume": number, transform: `translate(${left + bar.x},${top + bar.y})` },
      draw("rect", { width: bar.width, height: bar.height, rx: 3 }),
      draw("text", { x: bar.width / 2, y: bar.height / 2 + 4 }, fit(bar.label, bar.width - 10)),
      draw("title", {}, `${bar.label}. Click to follow.`))];
  }

  #neighbours() {
    const { raw } = this.program;
    const before = [...this.program.inputs(this.selected)].map((edge) => raw.edges.src[edge]);
    const after = [...this.program.outputs(this.selected)].map((edge) => raw.edges.dst[edge]);
    return new Set([...before, ...after]);
  }

  /** List the colocation edges between the constraints that cannot hold together: their ends, how far they go out, what they are. */
  #conflicts() {
    return (this.program.raw.refusal?.path ?? []).flatMap(([one, other, kind]) => {
      const [from, to] = [one, other].map((node) => this.places.get(this.#shownFor(node)));
      if (!from || !to || from === to) return [];
      const [right, end] = [from, to].map((place) => place.x + place.width);
      const [top, bottom] = [from, to].map((place) => place.y + place.height / 2);
      return [{ right, end, top, bottom, x: Math.max(right, end) + 50, kind }];
    });
  }

  #conflictEdges() {
    return this.#conflicts().map(({ right, end, top, bottom, x }) => (
      draw("path", { class: "edge conflict", d: `M${right},${top} C${x},${top} ${x},${bottom} ${end},${bottom}` })));
  }

  #conflictLabels() {
    return this.#conflicts().map(({ x, top, bottom, kind }) => draw("text", { class: "conflict-label", x: x - 4, y: (top + bottom) / 2 + 4 }, kind));
  }

  /** Draw the edges of the selected node, past all boxes, each to the box that shows its other end. */
  #nearEdges() {
    const own = this.selected < 0 ? -1 : this.tree.itemOf[this.selected];
    const here = this.places.get(own);
    if (!here || this.tree.isScope(own)) return [];
    const { program } = this;
    const [inputs, outputs] = [
      [...program.inputs(this.selected)].map((edge) => program.raw.edges.src[edge]),
      [...program.outputs(this.selected)].map((edge) => program.raw.edges.dst[edge]),
    ].map((nodes) => this.#placesOf(nodes.slice(0, NEIGHBOURS), own));
    const into = routed(dockOf(here, -1), inputs.map((place) => dockOf(place, 1)), this.blocks)
      .map((points, i) => (points ? rounded(points.reverse()) : link(inputs[i], here)));
    const out = routed(dockOf(here, 1), outputs.map((place) => dockOf(place, -1)), this.blocks)
      .map((points, i) => (points ? rounded(points) : link(here, outputs[i])));
    return [...into, ...out].map((d) => draw("path", { class: "edge near", d, "stroke-width": 2, "marker-end": "url(#arrow-near)" }));
  }

  /** List the places of the boxes that show nodes, each once, without the box `own`. */
  #placesOf(nodes, own) {
    const items = new Set(nodes.map((node) => this.#shownFor(node)));
    items.delete(own);
    return [...items].flatMap((item) => this.places.get(item) ?? []);
  }

  /** Return the box that shows a node: its own, or that of the outermost closed scope around it. */
  #shownFor(node) {
    const item = this.tree.itemOf[node];
    return this.tree.path(item).find((at) => this.places.has(at) && !this.open.has(at)) ?? item;
  }

  #move() {
    if (this.svg.hasAttribute("viewBox")) return; // it is being printed
    const { x, y, scale } = this.at;
    this.viewport.setAttribute("transform", `translate(${x.toFixed(2)},${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
    this.minimap.move(this);
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
  bringIntoView(item) {
    const screen = this.svg.getBoundingClientRect();
    const place = this.places.get(item);
    const { scale } = this.at;
    for (const [axis, room, length] of [["x", screen.width, place.width], ["y", screen.height, place.height]]) {
      const start = place[axis] * scale + this.at[axis];
      if (start + length * scale > room - 10) this.at[axis] -= start + length * scale - room + BORDER;
      if (place[axis] * scale + this.at[axis] < 10) this.at[axis] = BORDER - place[axis] * scale;
    }
    this.#move();
  }

  /** Keep the middle in the middle where the panel beside the graph opens or the window changes. */
  #resized({ width, height }) {
    const before = this.screen;
    if (width) this.screen = { width, height };
    if (before?.width && width) {
      this.at.x += (width - before.width) / 2;
      this.at.y += (height - before.height) / 2;
      this.#move();
    }
  }

  /** Do what a click on a box, a line, a bar or the sign of a scope's inside does. */
  press(element) {
    const { wire, volume, item } = element.dataset;
    if (element.matches(".into")) this.enter(Number(item));
    else if (wire !== undefined) this.onCopies([...this.wires[wire].copies]);
    else if (volume !== undefined) this.onCollective(this.shown.bars[volume].volume);
    else this.activate(Number(item));
  }

  /** Do what a click does: open or close a scope, select a node. */
  activate(item) {
    this.focused = item;
    if (this.tree.isScope(item)) { this.toggle(item); return; }
    this.select(this.tree.leaf[item]);
    this.elements.get(item).focus({ preventScroll: true });
    this.onSelect(this.tree.leaf[item]);
  }

  /** Note that the focus is on a box. */
  focusMoved(target) {
    const item = Number(target.closest(".box")?.dataset.item ?? -1);
    if (item < 0) return;
    this.elements.get(this.focused)?.setAttribute("tabindex", "-1");
    this.focused = item;
    target.setAttribute("tabindex", "0");
  }
}
