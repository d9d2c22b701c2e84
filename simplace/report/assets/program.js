"use strict";
// One placed program: the columns that the page embeds, with what follows from them.

const CONTROL = -1;

class Program {
  constructor(raw, page) {
    this.raw = raw;
    this.page = page;
    this.count = raw.nodes.leaf.length;
    this.schedule = raw.schedule;
    this.times = raw.schedule.times ?? null;
    this.errors = raw.schedule.errors ?? null;
    const { src, dst } = raw.edges;
    this.edgeCount = src.length;
    [this.outStart, this.outEdges] = byEnd(src, this.count);
    [this.inStart, this.inEdges] = byEnd(dst, this.count);
    this.copyOfEdge = this.#copiesOfEdges();
    this.refused = new Set(raw.refusal?.nodes); // the nodes over which the graph is refused
    this.hasParts = raw.overview.part.some((part) => part >= 0);
  }

  text(number) { return this.raw.texts[number]; }
  leafName(node) { return this.text(this.raw.nodes.leaf[node]); }
  scope(node) { return this.text(this.raw.nodes.scope[node]); }
  name(node) { return this.scope(node) + this.leafName(node); }
  op(node) { return this.text(this.raw.nodes.op[node]); }
  rule(node) { return this.text(this.raw.nodes.rule[node]); }
  column(name, node) { return this.text(this.raw.nodes[name][node]); }
  device(node) { return this.raw.nodes.device[node]; }
  deviceSign(number) { return this.page.devices[number] ?? NO_DEVICE; }
  inputs(node) { return this.inEdges.subarray(this.inStart[node], this.inStart[node + 1]); }
  outputs(node) { return this.outEdges.subarray(this.outStart[node], this.outStart[node + 1]); }
  isControl(edge) { return this.raw.edges.slot[edge] === CONTROL; }

  /** Return the node of a name, -1 where there is none. */
  find(name) {
    const end = name.lastIndexOf("/") + 1;
    const [scope, leaf] = [name.slice(0, end), name.slice(end)].map((text) => this.raw.texts.indexOf(text));
    return this.raw.nodes.leaf.findIndex((each, node) => each === leaf && this.raw.nodes.scope[node] === scope);
  }

  /** Return how many ops XLA compiles together in the place of a node, 0 where it does not. */
  compiled(node) {
    const { clusters } = this.raw;
    this.compiledOf ??= new Map(clusters.node.map((each, i) => [each, clusters.ops[i].length]));
    return this.compiledOf.get(node) ?? 0;
  }

  /** Say whether an edge leaves its device. */
  crosses(edge) {
    const copy = this.copyOfEdge[edge];
    return copy >= 0 && this.raw.copies.source[copy] !== this.raw.copies.target[copy];
  }

  /** List the sentences that explain a node, each a list of texts and of {node, text}. */
  explanation(node) {
    return this.raw.explanations[node].map((number) => this.sentence(number));
  }

  sentence(number) {
    const [template, ...nodes] = this.raw.sentences[number];
    const next = nodes.values();
    return this.raw.templates[template].map((part) =>
      (typeof part === "string" ? part : this.#mention(part, next.next().value)));
  }

  /** List the other members of a node's colocation group. */
  group(node) {
    const number = this.raw.nodes.group[node];
    if (number < 0) return [];
    this.groups ??= gather(this.raw.nodes.group);
    return this.groups.get(number).filter((other) => other !== node);
  }

  /** List the copies of what a node makes, and of what it uses. */
  copiesOf(node) {
    const { producer, consumers } = this.raw.copies;
    this.copiesFrom ??= gather(producer);
    this.copiesTo ??= gather(consumers.flat(), consumers.flatMap((nodes, i) => nodes.map(() => i)));
    return { out: this.copiesFrom.get(node) ?? [], into: this.copiesTo.get(node) ?? [] };
  }

  #mention(form, node) {
    const name = this.name(node);
    const variable = `the variable '${this.column("variable", node)}'`;
    return { node, text: [`${name} (${this.op(node)})`, name, variable][form] };
  }

  #copiesOfEdges() {
    const { producer, slot, target, consumers } = this.raw.copies;
    const numbers = new Map();
    for (let i = 0; i < producer.length; i += 1) {
      for (const consumer of consumers[i]) numbers.set(`${producer[i]}:${slot[i]}:${target[i]}:${consumer}`, i);
    }
    const found = new Int32Array(this.edgeCount).fill(-1);
    if (!numbers.size) return found;
    const edges = this.raw.edges;
    const makes = new Set(producer);
    for (let e = 0; e < this.edgeCount; e += 1) {
      if (!makes.has(edges.src[e])) continue;
      found[e] = numbers.get(`${edges.src[e]}:${edges.slot[e]}:${this.device(edges.dst[e])}:${edges.dst[e]}`) ?? -1;
    }
    return found;
  }
}

const NO_DEVICE = { label: "no device", letters: "–", style: "nowhere" };

/** Sort edge numbers by one of their ends: the edges of node i are those from starts[i] up to starts[i + 1]. */
function byEnd(ends, count) {
  const starts = new Int32Array(count + 1);
  for (const end of ends) starts[end + 1] += 1;
  for (let i = 0; i < count; i += 1) starts[i + 1] += starts[i];
  const next = starts.slice();
  const edges = new Int32Array(ends.length);
  for (let e = 0; e < ends.length; e += 1) { edges[next[ends[e]]] = e; next[ends[e]] += 1; }
  return [starts, edges];
}

/** List, for each value of a column, its places in the column, or what `numbers` has at those places. */
function gather(column, numbers = null) {
  const found = new Map();
  column.forEach((value, i) => {
    const number = numbers ? numbers[i] : i;
    if (found.has(value)) found.get(value).push(number);
    else found.set(value, [number]);
  });
  return found;
}
