"use strict";
// The tree of scopes that the graph opens and closes: items with a bounded number of parts, nodes at its leaves.

const FEW = 8; // boxes: where fewer show, a mere collection is opened too

class Tree {
  /** Return the tree of a program by one of `PATHS`, the ways to group its nodes: it is built in steps, and kept. */
  static* of(program, by) {
    const { trees } = program;
    if (!trees.has(by)) {
      const group = yield* grouped(program, by);
      if (program.isLarge) yield;
      trees.set(by, new Tree(program, by, group));
    }
    return trees.get(by);
  }

  constructor(program, by, group) {
    this.program = program;
    this.by = by;
    this.hasPlaces = by === "overview"; // the outermost items are devices
    this.parent = [-1];
    this.depth = [0];
    this.label = [""];
    this.detail = [""]; // of the parts of a step: their ops
    this.parts = [[]];
    this.isCollection = [false]; // of siblings put together because they are many
    this.isRun = [false]; // of siblings that follow each other
    this.leaf = [-1]; // the node of an item, -1 for a scope
    this.first = [0]; // an item holds the nodes order[first] up to, not including, order[last]
    this.last = [program.count];
    this.entries = [{ group }]; // what the parts of an item are made of once they are asked for
    this.order = new Int32Array(program.count).map((_, node) => node);
    this.itemOf = new Int32Array(program.count); // the innermost item that is made so far
    this.version = 0; // counts the changes of the order
  }

  size(item) { return this.last[item] - this.first[item]; }
  isScope(item) { return this.leaf[item] < 0; }
  nodes(item) { return this.order.subarray(this.first[item], this.last[item]); }

  /** List the items above an item, innermost first, without the root. */
  above(item) {
    const found = [];
    for (let at = this.parent[item]; at > 0; at = this.parent[at]) found.push(at);
    return found;
  }

  /** List the items from the outermost that holds an item down to the item itself. */
  path(item) { return item > 0 ? [...this.above(item).reverse(), item] : []; }

  /** Return the address of an item: its place among its siblings, and those of the items above it. */
  address(item) {
    return this.path(item).map((at) => this.parts[this.parent[at]].indexOf(at)).join(".");
  }

  /** Return the item at an address, -1 where there is none; what is on the way is made in steps. */
  *at(address) {
    let item = 0;
    for (const place of address.split(".")) {
      if (item < 0) break;
      yield* this.makeParts(item);
      item = this.parts[item][Number(place)] ?? -1;
    }
    return item;
  }

  /** Return whether an item is a device of the overview. */
  isPlace(item) { return this.hasPlaces && this.parent[item] === 0; }

  /** List, in steps, the devices to open at first: as many as leave all of them readable, which `fits` decides. */
  *openedPlaces(fits) {
    const places = this.partsOf(0).filter((item) => this.isScope(item)).sort((one, other) => this.size(other) - this.size(one));
    for (let count = places.length; count > 1; count -= 1) {
      const open = new Set(places.slice(0, count));
      if (yield* fits(open)) return open;
    }
    return new Set(places.slice(0, 1));
  }

  /** Return the part of `scope` that holds an item. */
  partHolding(scope, item) {
    while (this.parent[item] !== scope) item = this.parent[item];
    return item;
  }

  /** Choose, in steps, the scopes to open at first: the largest, as long as at most `budget` boxes show. */
  *firstOpened(budget) {
    const open = new Set();
    yield* this.#makePartsAlone(0);
    let boxes = this.partsOf(0).length;
    const mayOpen = (item) => this.isScope(item) && (boxes < FEW || !this.isCollection[item]);
    const waiting = this.partsOf(0).filter(mayOpen);
    while (waiting.length) {
      waiting.sort((one, other) => this.size(other) - this.size(one) || one - other);
      const item = waiting.shift();
      yield* this.#makePartsAlone(item);
      const more = this.partsOf(item).length - 1;
      if (boxes + more > budget) continue;
      boxes += more;
      open.add(item);
      waiting.push(...this.partsOf(item).filter(mayOpen));
    }
    return open;
  }

  /** List the parts of an item; they are made when they are first asked for. */
  partsOf(item) {
    if (this.entries[item]) doAtOnce(this.makeParts(item));
    return this.parts[item];
  }

  /** Make the parts of an item, in steps where they are many. */
  *makeParts(item) {
    const entry = this.entries[item];
    if (!entry) return;
    const list = entry.list ?? (yield* entries(this.program, entry.group));
    const isOpened = this.hasPlaces && !list.some((part) => part.isPlace);
    const whole = isOpened ? yield* withoutKnots(this.program, list) : list;
    const parts = yield* bounded(this.program, whole);
    if (!this.entries[item]) return; // they were asked for between two steps
    this.entries[item] = null;
    this.version += 1;
    let at = this.first[item];
    for (const part of parts) at = this.#add(item, part, at);
  }

  /** Make the parts of an item; those of a large program are a step of their own at least. */
  *#makePartsAlone(item) {
    if (!this.entries[item]) return;
    yield* this.makeParts(item);
    if (this.program.isLarge) yield;
  }

  /** Return the item of a node alone; the items around it are made. */
  leafOf(node) {
    while (this.isScope(this.itemOf[node])) this.partsOf(this.itemOf[node]);
    return this.itemOf[node];
  }

  /** Make the items around a node, in steps, and return that of the node alone. */
  *makeLeaf(node) {
    while (this.isScope(this.itemOf[node])) yield* this.#makePartsAlone(this.itemOf[node]);
    return this.itemOf[node];
  }

  #add(parent, entry, first) {
    const item = this.parent.length;
    this.parent.push(parent);
    this.parts[parent].push(item);
    this.depth.push(this.depth[parent] + 1);
    this.label.push(entry.label);
    this.detail.push(entry.detail ?? "");
    this.parts.push([]);
    this.isCollection.push(Boolean(entry.list));
    this.isRun.push(Boolean(entry.isRun));
    this.leaf.push(entry.node ?? -1);
    this.entries.push(entry.node === undefined ? entry : null);
    let at = first;
    for (const node of nodesOf(entry)) {
      this.order[at] = node;
      this.itemOf[node] = item;
      at += 1;
    }
    this.first.push(first);
    this.last.push(at);
    return at;
  }
}
