"use strict";
// Siblings that are too many are put together along their edges, so that no group depends on itself by way of another.

const CROWDED = 16; // parts of an item: where it has more, some are put together
const FAN_OUT = 60; // parts that an item shows at most
const KIND_OF_MANY = 4; // siblings of one kind that still stand alone in a crowd
const RUNS = 12; // that what is left is cut into at most
const OPENED = 6; // scopes, one in the other, that are opened because they make a knot
const SHORTEST = 4; // siblings of a run, on the average

/** Put siblings together, in steps, until they are few: those of a kind that read, or feed, no sibling; then runs of the rest. */
function* bounded(program, list) {
  if (list.length <= CROWDED) return list;
  const after = yield* edgesAmong(program, list);
  const isRead = new Uint8Array(list.length);
  for (const targets of after) for (const target of targets) isRead[target] = 1;
  const [sources, rest] = yield* joinKinds(list, (i) => !isRead[i]);
  const [sinks, middle] = yield* joinKinds(list, (i) => !after[i].length, rest);
  const room = CROWDED - sources.length - sinks.length;
  if (!middle.length && sources.length + sinks.length === 1) return inPieces(list); // all of them are of one kind
  if (middle.length <= Math.max(room, SHORTEST)) return inPieces([...sources, ...middle.map((i) => list[i]), ...sinks]);
  const order = yield* sortAlong(list, after, middle);
  const count = Math.max(2, Math.min(RUNS, Math.ceil(middle.length / SHORTEST), Math.max(room, 2)));
  const runs = yield* cutRuns(order, after, count);
  return inPieces([...sources, ...runs.map((run) => join(run.map((i) => list[i]))), ...sinks]);
}

/** Put, in steps, what a scope holds in its place where the scope depends on itself by way of its siblings. */
function* withoutKnots(program, list) {
  let whole = list;
  const mayOpen = (entry) => entry.group && !entry.isPlace;
  for (let depth = 0; depth < OPENED && whole.some(mayOpen); depth += 1) {
    const knotted = findKnotted(yield* edgesAmong(program, whole));
    const before = whole;
    whole = [];
    for (const [i, entry] of before.entries()) {
      if (knotted[i] && mayOpen(entry)) for (const inner of yield* entries(program, entry.group)) whole.push(inner);
      else whole.push(entry);
      if (i % STEP === STEP - 1) yield;
    }
    if (!before.some((entry, i) => knotted[i] && mayOpen(entry))) break;
  }
  return whole.sort((one, other) => one.first - other.first);
}

/** Tell which siblings are on a cycle, or between two: those left once what begins and what ends all paths is gone. */
function findKnotted(after) {
  const before = after.map(() => []);
  after.forEach((targets, i) => { for (const j of targets) before[j].push(i); });
  const isLeft = new Uint8Array(after.length).fill(1);
  for (const [ahead, behind] of [[after, before], [before, after]]) {
    const waits = behind.map((list, i) => (isLeft[i] ? list.filter((j) => isLeft[j]).length : 0));
    const ready = [...waits.keys()].filter((i) => isLeft[i] && !waits[i]);
    while (ready.length) {
      const i = ready.pop();
      isLeft[i] = 0;
      for (const j of ahead[i]) {
        if (!isLeft[j]) continue;
        waits[j] -= 1;
        if (!waits[j]) ready.push(j);
      }
    }
  }
  return isLeft;
}

const NONE = [];

/** List, in steps, for each sibling, those that read what it or a node inside it makes. */
function* edgesAmong(program, list) {
  const owner = program.owner ?? new Int32Array(program.count).fill(-1);
  program.owner = null; // another may want one between two steps
  const inside = [];
  let seen = 0;
  for (const [i, entry] of list.entries()) {
    const nodes = nodesOf(entry);
    for (const node of nodes) owner[node] = i;
    inside.push(nodes);
    if ((seen += nodes.length) >= STEP) { seen = 0; yield; }
  }
  const { dst, slot } = program.raw.edges;
  const { outStart, outEdges } = program;
  const seenBy = new Int32Array(list.length).fill(-1); // the last sibling that was found to feed each
  const after = [];
  for (const [i, nodes] of inside.entries()) {
    let found = NONE;
    for (const node of nodes) {
      if (program.isLoopBack(node)) continue;
      for (let at = outStart[node]; at < outStart[node + 1]; at += 1) {
        const edge = outEdges[at];
        const other = owner[dst[edge]];
        if (other < 0 || other === i || seenBy[other] === i || slot[edge] === CONTROL) continue;
        seenBy[other] = i;
        if (found === NONE) found = [];
        found.push(other);
      }
    }
    after.push(found);
    if ((seen += nodes.length) >= STEP) { seen = 0; yield; }
  }
  for (const nodes of inside) for (const node of nodes) owner[node] = -1;
  program.owner = owner;
  return after;
}

/** Put together, in steps, those of a kind that `isEnd` chooses; return what was made, and the places of the others. */
function* joinKinds(list, isEnd, places = list.keys()) {
  const [ofNodes, ofScopes] = [new Map(), new Map()];
  const [kinds, rest] = [[], []];
  let seen = 0;
  for (const i of places) {
    seen += 1;
    if (seen % STEP === 0) yield;
    if (!isEnd(i)) { rest.push(i); continue; }
    const { node, kind } = list[i];
    const known = node === undefined ? ofScopes : ofNodes;
    if (!known.has(kind)) { known.set(kind, []); kinds.push(known.get(kind)); }
    known.get(kind).push(i);
  }
  const joined = [];
  for (const alike of kinds) {
    const entries = alike.map((i) => list[i]);
    if (alike.length <= KIND_OF_MANY) joined.push(...entries);
    else joined.push({ label: `${entries[0].kind} × ${alike.length}`, list: entries, first: entries[0].first, kind: entries[0].kind });
  }
  return [joined, rest];
}

/** Sort siblings, in steps, along their edges, and else by their first nodes; of a cycle, the first node begins. */
function* sortAlong(list, after, places) {
  const waits = new Int32Array(list.length);
  const isLeft = new Uint8Array(list.length);
  for (const i of places) isLeft[i] = 1;
  for (const i of places) for (const j of after[i]) waits[j] += 1;
  const byFirst = [...places].sort((a, b) => list[a].first - list[b].first);
  const ready = new Heap((a, b) => list[a].first - list[b].first);
  for (const i of byFirst) if (!waits[i]) ready.push(i);
  const order = [];
  let next = 0;
  while (order.length < byFirst.length) {
    let i = ready.pop();
    if (i === undefined) { // all that are left wait for each other
      while (!isLeft[byFirst[next]]) next += 1;
      i = byFirst[next];
    }
    if (!isLeft[i]) continue;
    isLeft[i] = 0;
    order.push(i);
    if (order.length % STEP === 0) yield;
    for (const j of after[i]) {
      if (!isLeft[j]) continue;
      waits[j] -= 1;
      if (!waits[j]) ready.push(j);
    }
  }
  return order;
}

/** Cut an order, in steps, into runs of about one length, where few edges cross the cut. */
function* cutRuns(order, after, count) {
  const at = new Int32Array(after.length).fill(-1);
  order.forEach((i, place) => { at[i] = place; });
  const crossing = new Int32Array(order.length + 1);
  for (let from = 0; from < order.length; from += 1) {
    for (const j of after[order[from]]) {
      const to = at[j];
      if (to > from) { crossing[from + 1] += 1; crossing[to + 1] -= 1; }
    }
    if (from % STEP === STEP - 1) yield;
  }
  for (let i = 1; i < crossing.length; i += 1) crossing[i] += crossing[i - 1];
  const length = order.length / count;
  const cuts = [0];
  for (let k = 1; k < count; k += 1) {
    let best = Math.max(Math.round(k * length), cuts.at(-1) + 1);
    for (let i = Math.max(Math.ceil((k - 0.3) * length), cuts.at(-1) + 1); i <= Math.min((k + 0.3) * length, order.length - 1); i += 1) {
      if (crossing[i] < crossing[best]) best = i;
    }
    if (best < order.length) cuts.push(best);
  }
  return cuts.map((from, k) => order.slice(from, cuts[k + 1] ?? order.length));
}

function join(list) {
  if (list.length === 1) return list[0];
  const label = `${elide(list[0].label, 24)} … ${elide(list.at(-1).label, 24)}`;
  return { label, list, first: list.reduce((least, one) => Math.min(least, one.first), Infinity), kind: "", isRun: true };
}

/** Put neighbours together where even the joined ones are too many. */
function inPieces(list) {
  if (list.length <= FAN_OUT) return list;
  const length = Math.max(2, Math.ceil(list.length / FAN_OUT));
  return Array.from({ length: Math.ceil(list.length / length) }, (_, i) => join(list.slice(i * length, (i + 1) * length)));
}

/** Keep values by an order; `pop` takes the least, undefined where there is none. */
class Heap {
  constructor(compare) {
    this.compare = compare;
    this.values = [];
  }

  push(value) {
    const { values, compare } = this;
    let at = values.push(value) - 1;
    while (at) {
      const above = (at - 1) >> 1;
      if (compare(values[above], value) <= 0) break;
      values[at] = values[above];
      at = above;
    }
    values[at] = value;
  }

  pop() {
    const { values, compare } = this;
    const [least] = values;
    const last = values.pop();
    if (!values.length) return least;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= values.length) break;
      if (below + 1 < values.length && compare(values[below + 1], values[below]) < 0) below += 1;
      if (compare(values[below], last) >= 0) break;
      values[at] = values[below];
      at = below;
    }
    values[at] = last;
    return least;
  }
}

/** Split the edges between the parts of an item into those that no longer path implies, and the others. */
function withoutImplied(edges, mayHide) {
  const after = new Map();
  for (const { from, to } of edges) {
    if (!after.has(from)) after.set(from, new Set());
    after.get(from).add(to);
  }
  const reaches = (start, goal) => {
    const seen = new Set([start]);
    const waiting = [start];
    while (waiting.length) {
      for (const next of after.get(waiting.pop()) ?? []) {
        if (next === goal) return true;
        if (!seen.has(next)) { seen.add(next); waiting.push(next); }
      }
    }
    return false;
  };
  return edges.filter((edge) => {
    if (!mayHide(edge)) return true;
    const next = after.get(edge.from);
    next.delete(edge.to);
    if (reaches(edge.from, edge.to)) return false;
    next.add(edge.to);
    return true;
  });
}
