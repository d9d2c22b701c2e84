"use strict";
// The tree of scopes that the graph opens and closes: items with a bounded number of parts, nodes at its leaves.

const CROWDED = 16; // parts of an item: where it has more, those of one kind are put together
const FAN_OUT = 60; // parts that an item shows at most; more are put together by number
const FEW = 8; // boxes: where fewer show, a mere collection is opened too
const DEEPEST = 40; // steps of a path; what follows counts as one
const KIND_OF_MANY = 4; // siblings of one kind that still stand alone in a crowd

class Tree {
  /** Build the tree of a program by "scope", "function" or "device". */
  constructor(program, by) {
    this.program = program;
    this.parent = [-1];
    this.depth = [0];
    this.label = [""];
    this.parts = [[]];
    this.isCollection = [false]; // of siblings put together because they are many
    this.leaf = [-1]; // the node of an item, -1 for a scope
    this.first = [0]; // an item holds the nodes order[first] up to, not including, order[last]
    this.last = [0];
    this.order = new Int32Array(program.count);
    this.itemOf = new Int32Array(program.count);
    this.placed = 0;
    this.#fill(0, entries(grouped(program, PATHS[by])));
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

  /** Return the part of `scope` that holds an item. */
  partHolding(scope, item) {
    while (this.parent[item] !== scope) item = this.parent[item];
    return item;
  }

  /** Choose the scopes to open at first: the largest, as long as at most `budget` boxes show. */
  firstOpened(budget) {
    const open = new Set();
    let boxes = this.parts[0].length;
    const mayOpen = (item) => this.isScope(item) && (boxes < FEW || !this.isCollection[item]);
    const waiting = this.parts[0].filter(mayOpen);
    while (waiting.length) {
      waiting.sort((one, other) => this.size(other) - this.size(one) || one - other);
      const item = waiting.shift();
      const more = this.parts[item].length - 1;
      if (boxes + more > budget) continue;
      boxes += more;
      open.add(item);
      waiting.push(...this.parts[item].filter(mayOpen));
    }
    return open;
  }

  #fill(parent, list) {
    this.first[parent] = this.placed;
    for (const entry of bounded(list)) this.parts[parent].push(this.#add(parent, entry));
    this.last[parent] = this.placed;
  }

  #add(parent, entry) {
    const item = this.parent.length;
    this.parent.push(parent);
    this.depth.push(this.depth[parent] + 1);
    this.label.push(entry.label);
    this.parts.push([]);
    this.isCollection.push(Boolean(entry.list));
    this.leaf.push(entry.node ?? -1);
    this.first.push(this.placed);
    this.last.push(this.placed);
    if (entry.node === undefined) {
      this.#fill(item, entry.list ?? entries(entry.group));
      return item;
    }
    this.order[this.placed] = entry.node;
    this.itemOf[entry.node] = item;
    this.placed += 1;
    this.last[item] = this.placed;
    return item;
  }
}

function scopes(program, node, skipped = "") {
  const scope = program.scope(node);
  const rest = skipped && scope.startsWith(`${skipped}/`) ? scope.slice(skipped.length + 1) : scope;
  const steps = rest.split("/").slice(0, -1);
  return steps.length <= DEEPEST ? steps : [...steps.slice(0, DEEPEST), steps.slice(DEEPEST).join("/")];
}

// What decides the path of a node: a key for nodes that share it, and its steps.
const PATHS = {
  scope: (program, node) => [program.raw.nodes.scope[node], () => scopes(program, node)],
  device: (program, node) => [
    `${program.device(node)} ${program.raw.nodes.scope[node]}`,
    () => [program.deviceSign(program.device(node)).label, ...scopes(program, node)],
  ],
  function: (program, node) => [
    ["function", "via", "scope"].map((name) => program.raw.nodes[name][node]).join(" "),
    () => {
      const via = program.column("via", node);
      const called = program.column("function", node);
      return [called ? `function ${called}` : "the graph itself", ...(via ? [via] : []), ...scopes(program, node, via)];
    },
  ],
};

function grouped(program, pathOf) {
  const root = { parts: new Map(), nodes: [], first: 0 };
  const known = new Map();
  for (let node = 0; node < program.count; node += 1) {
    const [key, steps] = pathOf(program, node);
    let group = known.get(key);
    if (!group) {
      group = root;
      for (const step of steps()) {
        if (!group.parts.has(step)) group.parts.set(step, { parts: new Map(), nodes: [], first: node });
        group = group.parts.get(step);
      }
      known.set(key, group);
    }
    group.nodes.push({ label: program.leafName(node), node, first: node, kind: program.op(node) });
  }
  return root;
}

/** List what a group holds by its first node; a scope with one scope inside and nothing else is one entry. */
function entries(group) {
  const found = [...group.nodes];
  for (const [step, part] of group.parts) {
    let label = step;
    let inner = part;
    while (!inner.nodes.length && inner.parts.size === 1) {
      const [[next, only]] = inner.parts;
      label = `${label}/${next}`;
      inner = only;
    }
    const alone = inner.nodes.length === 1 && !inner.parts.size ? inner.nodes[0] : null;
    found.push(alone ? { ...alone, label: `${label}/${alone.label}` }
      : { label, group: inner, first: inner.first, kind: stem(label) });
  }
  return found.sort((one, other) => one.first - other.first);
}

/** Put entries together, by kind and then by number, until they are few. */
function bounded(list) {
  if (list.length <= CROWDED) return list;
  const kinds = new Map();
  for (const entry of list) {
    const key = `${entry.node === undefined ? "scope" : "node"} ${entry.kind}`;
    if (!kinds.has(key)) kinds.set(key, []);
    kinds.get(key).push(entry);
  }
  if (kinds.size === 1) return list.length <= FAN_OUT ? list : pieces(list);
  const joined = [];
  for (const alike of kinds.values()) {
    if (alike.length <= KIND_OF_MANY) joined.push(...alike);
    else joined.push({ label: `${alike[0].kind} × ${alike.length}`, list: alike, first: alike[0].first, kind: alike[0].kind });
  }
  return joined.length <= FAN_OUT ? joined.sort((one, other) => one.first - other.first) : pieces(joined);
}

function pieces(list) {
  const length = Math.max(2, Math.ceil(list.length / FAN_OUT));
  const found = [];
  for (let at = 0; at < list.length; at += length) {
    const piece = list.slice(at, at + length);
    const label = `${elide(piece[0].label, 24)} … ${elide(piece.at(-1).label, 24)}`;
    found.push(piece.length === 1 ? piece[0] : { label, list: piece, first: piece[0].first, kind: "" });
  }
  return found;
}

/** Return a name without the number that makes it unique. */
function stem(name) {
  return name.replace(/(_\d+)+$/, "") || name;
}
