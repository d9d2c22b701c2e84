"use strict";
// What the colours of the graph mean: a device, a reason or a cost; each has letters too.

const SHARES = [1e-4, 1e-3, 1e-2, 1e-1]; // of the time of all ops: the limits between the colours of costs

class Colouring {
  constructor(page, program, mode) {
    this.page = page;
    this.program = program;
    this.mode = mode;
    this.total = mode === "cost" ? program.times.reduce((sum, time) => sum + time, 0) : 0;
    this.known = new Map();
  }

  /** Return the sign of one node. */
  node(node) {
    if (this.mode === "device") return this.program.deviceSign(this.program.device(node));
    if (this.mode === "reason") return this.#reason(this.program.raw.nodes.rule[node]);
    return this.#cost(this.program.times[node]);
  }

  /** List [sign, count of nodes] of a scope, most frequent first; of costs, the one sign of their sum. */
  scope(tree, item) {
    if (!this.known.has(item)) this.known.set(item, this.#scope(tree, item));
    return this.known.get(item);
  }

  /** Return the time of an item in nanoseconds. */
  time(tree, item) {
    const { times } = this.program;
    let sum = 0;
    for (const node of tree.nodes(item)) sum += times[node];
    return sum;
  }

  /** Return how far off the time of an item may be, as a share of it: what its nodes may be off adds up. */
  error(tree, item) {
    const { times, errors } = this.program;
    let off = 0;
    for (const node of tree.nodes(item)) off += times[node] * errors[node];
    return off && off / this.time(tree, item);
  }

  legend(tree) {
    if (this.mode !== "cost") return this.scope(tree, 0);
    return [...SHARES, Infinity].map((_, i) => [costSign(i), null]);
  }

  #scope(tree, item) {
    if (this.mode === "cost") return [[this.#cost(this.time(tree, item)), tree.size(item)]];
    const column = this.program.raw.nodes[this.mode === "device" ? "device" : "rule"];
    const counts = new Map(); // of the values of the column; some may have one sign
    for (const node of tree.nodes(item)) counts.set(column[node], (counts.get(column[node]) ?? 0) + 1);
    const signs = new Map();
    for (const [value, count] of counts) {
      const sign = this.mode === "device" ? this.program.deviceSign(value) : this.#reason(value);
      signs.set(sign, (signs.get(sign) ?? 0) + count);
    }
    return [...signs].sort(([sign, one], [other, two]) => two - one || sign.label.localeCompare(other.label, "en", { numeric: true }));
  }

  #reason(text) { return this.page.rules[this.program.text(text)] ?? NO_DEVICE; }

  #cost(time) {
    const share = this.total ? time / this.total : 0;
    const place = SHARES.findIndex((limit) => share < limit);
    return costSign(place < 0 ? SHARES.length : place);
  }
}

const COST_SIGNS = [...SHARES, Infinity].map((limit, i) => ({
  label: i < SHARES.length ? `below ${SHARES[i] * 100}% of the time of all ops` : "10% or more",
  letters: "▁▂▄▆█"[i],
  style: `cost cost-${i}`,
}));

function costSign(place) { return COST_SIGNS[place]; }
