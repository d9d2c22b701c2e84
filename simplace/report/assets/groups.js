"use strict";
// The nodes of a program sorted into nested groups by a path of steps; each group is a range of one array.

const DEEPEST = 40; // steps of a path; what follows counts as one

/** A group: its parts by step, and its nodes, order[from] up to, not including, order[to]; those in no part are first. */
class Group {
  constructor(step, first, number) {
    Object.assign(this, { step, first, number, parts: null, order: null, from: 0, own: 0, to: 0 });
  }

  get count() { return this.own - this.from; }
  get partCount() { return this.parts?.size ?? 0; }
  nodes() { return this.order.subarray(this.from, this.to); }
  ownNodes() { return this.order.subarray(this.from, this.own); }
}

/** Sort the nodes of a program into groups by one of `PATHS`, in steps; return the outermost. */
function* grouped(program, by) {
  const { keyOf, stepsOf } = PATHS[by](program);
  const groups = [new Group("", 0, 0)];
  const known = new Map();
  const groupOf = new Int32Array(program.count);
  let [before, number] = [NaN, 0];
  for (let node = 0; node < program.count; node += 1) {
    if (node % STEP === STEP - 1) yield;
    const key = keyOf(node);
    if (key !== before) { // neighbours often share their path
      before = key;
      number = known.get(key) ?? -1;
      if (number < 0) known.set(key, number = groupAt(groups, stepsOf(node), node).number);
    }
    groupOf[node] = number;
  }
  if (program.isLarge) yield;
  collect(groups, sortByEnd(groupOf, groups.length));
  return groups[0];
}

/** Return the group at the end of a path; groups on the way are made, at their first node. */
function groupAt(groups, steps, node) {
  let at = groups[0];
  for (const step of steps) {
    const key = step.key ?? step;
    at.parts ??= new Map();
    let inner = at.parts.get(key);
    if (!inner) {
      inner = new Group(step, node, groups.length);
      groups.push(inner);
      at.parts.set(key, inner);
    }
    at = inner;
  }
  return at;
}

/** Give each group its range: its own nodes, then those of its parts, the last part first. */
function collect(groups, [starts, places]) {
  const order = new Int32Array(places.length);
  let at = 0;
  const waiting = [groups[0]];
  while (waiting.length) {
    const group = waiting.pop();
    if (group.order) { group.to = at; continue; } // all inside it is done
    group.order = order;
    group.from = at;
    for (let i = starts[group.number]; i < starts[group.number + 1]; i += 1) { order[at] = places[i]; at += 1; }
    group.own = at;
    waiting.push(group);
    if (group.parts) waiting.push(...group.parts.values());
  }
}

function scopes(program, node, skipped = "") {
  const scope = program.scope(node);
  const rest = skipped && scope.startsWith(`${skipped}/`) ? scope.slice(skipped.length + 1) : scope;
  const steps = rest.split("/").slice(0, -1);
  return steps.length <= DEEPEST ? steps : [...steps.slice(0, DEEPEST), steps.slice(DEEPEST).join("/")];
}

const TEXTS = 4194304; // that a program has fewer of
const DEVICES = 4096;

// What decides the path of a node: a number that nodes of one path share, and the steps.
const PATHS = {
  overview: (program) => {
    const { place, part, parts } = program.raw.overview;
    const { device, scope } = program.raw.nodes; // of alike places, the device matters, too
    const perPlace = parts.length + 1;
    return {
      keyOf: (node) => (((place[node] + 1) * perPlace + part[node] + 1) * DEVICES + device[node] + 1) * TEXTS + scope[node],
      stepsOf: (node) => overviewSteps(program, node),
    };
  },
  layer: (program) => {
    const { layer } = program.raw.overview;
    const { scope } = program.raw.nodes;
    return {
      keyOf: (node) => layer[node] * TEXTS + scope[node],
      stepsOf: (node) => [program.text(layer[node]), ...scopes(program, node)],
    };
  },
  scope: (program) => {
    const { scope } = program.raw.nodes;
    return { keyOf: (node) => scope[node], stepsOf: (node) => scopes(program, node) };
  },
  device: (program) => {
    const { device, scope } = program.raw.nodes;
    return {
      keyOf: (node) => (device[node] + 1) * TEXTS + scope[node],
      stepsOf: (node) => [program.deviceSign(device[node]).label, ...scopes(program, node)],
    };
  },
  function: (program) => {
    const { function: called, via, scope } = program.raw.nodes;
    const calls = new Map();
    const callOf = (node) => { // functions and calls are two texts: numbers for their pairs
      const pair = called[node] * TEXTS + via[node];
      if (!calls.has(pair)) calls.set(pair, calls.size);
      return calls.get(pair);
    };
    return {
      keyOf: (node) => callOf(node) * TEXTS + scope[node],
      stepsOf: (node) => functionSteps(program, program.text(called[node]), program.text(via[node]), node),
    };
  },
};

function functionSteps(program, called, via, node) {
  return [called ? `function ${called}` : "the graph itself", ...(via ? [via] : []), ...scopes(program, node, via)];
}

const NOWHERE = { key: "-1", rank: Number.MAX_VALUE, label: "not placed", detail: "", isKept: true };

/** List the steps to a node by device, part of the step, device where several are alike, and name scope. */
function overviewSteps(program, node) {
  const { places, parts, place, part } = program.raw.overview;
  const where = places[place[node]];
  const steps = [where ? { key: `place ${place[node]}`, rank: place[node], ...where, isKept: true } : NOWHERE];
  if (part[node] >= 0) steps.push({ key: `part ${part[node]}`, ...parts[part[node]], isKept: true });
  else if (parts.length && program.hasParts) steps.push({ key: "rest", label: "ops without tensors", detail: "", isKept: true });
  if (where?.devices.length > 1) steps.push(program.deviceSign(program.device(node)).label);
  return [...steps, ...scopes(program, node)];
}

/** List, in steps, what a group holds by its first node; a scope with one scope inside and nothing else is one entry. */
function* entries(program, group) {
  const found = [];
  for (const node of group.ownNodes()) {
    found.push(nodeEntry(program, node));
    if (found.length % STEP === 0) yield;
  }
  for (const part of group.parts?.values() ?? []) {
    const { step } = part;
    let label = step.label ?? step;
    let inner = part;
    for (let only = onlyScope(inner); only; only = onlyScope(inner)) {
      if (!step.isKept) label = `${label}/${only.step}`;
      inner = only;
    }
    const alone = inner.count === 1 && !inner.partCount ? nodeEntry(program, inner.order[inner.from]) : null;
    if (!alone || step.devices) found.push({ label, detail: step.detail, group: inner, isPlace: Boolean(step.isKept), rank: step.rank, first: inner.first, kind: stem(label) });
    else found.push(step.isKept ? alone : { ...alone, label: `${label}/${alone.label}` });
    if (found.length % STEP === 0) yield;
  }
  const rank = (entry) => entry.rank ?? Number.MAX_VALUE; // of devices: their order
  return found.sort((one, other) => rank(one) - rank(other) || one.first - other.first);
}

function nodeEntry(program, node) {
  return { label: program.leafName(node), node, first: node, kind: program.op(node) };
}

/** Return the one scope that a group holds, null where it holds anything else. */
function onlyScope(group) {
  if (group.count || group.partCount !== 1) return null;
  const [only] = group.parts.values();
  return only.step.isKept ? null : only;
}

/** Return a name without the number that makes it unique. */
function stem(name) {
  return name.replace(/(_\d+)+$/, "") || name;
}

/** List the nodes of an entry: of a node, of a group, or of entries put together. */
function nodesOf(entry) {
  if (entry.node !== undefined) return [entry.node];
  if (entry.group) return entry.group.nodes();
  const found = [];
  for (const one of entry.list) {
    if (one.node === undefined) for (const node of nodesOf(one)) found.push(node);
    else found.push(one.node);
  }
  return found;
}
