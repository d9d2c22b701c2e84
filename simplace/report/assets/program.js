"use strict";
// One placed program: the columns that the page embeds, with what follows from them.

const CONTROL = -1;
const LARGE = 4096; // nodes of a program on which work is done in steps

/** Read a record of columns; a long column is parsed when it is first read, from an element of its own. */
function embeddedColumns(id) {
  const record = embedded(id);
  for (const path of record.aside) {
    const [owner, key] = placeOf(record, path);
    const keep = (value) => { Object.defineProperty(owner, key, { value, enumerable: true, configurable: true, writable: true }); return value; };
    Object.defineProperty(owner, key, { get: () => keep(unfolded(embedded(`${id}.${path}`))), enumerable: true, configurable: true });
  }
  return record;
}

/** Return the record that has a column, and the column's key in it. */
function placeOf(record, path) {
  const keys = path.split(".");
  const key = keys.pop();
  return [keys.reduce((at, step) => at[step], record), key];
}

/** Lists of numbers, kept as one list; they are read by `at` as those of an array are. */
class Lists {
  constructor({ lengths, values }) {
    this.values = values;
    this.starts = new Int32Array(lengths.length + 1);
    lengths.forEach((length, i) => { this.starts[i + 1] = this.starts[i] + length; });
  }

  at(i) { return this.values.slice(this.starts[i], this.starts[i + 1]); }
}

function unfolded(column) { return column.lengths ? new Lists(column) : column; }

/** Parse the columns in elements of their own that `isWanted` chooses; yield after each. */
function* parseColumns(record, isWanted) {
  for (const path of record.aside) {
    if (!isWanted(path)) continue;
    const [owner, key] = placeOf(record, path);
    if (!Object.getOwnPropertyDescriptor(owner, key).get) continue; // it is parsed already
    void owner[key];
    yield;
  }
}

class Program {
  constructor(raw, page) {
    this.raw = raw;
    this.page = page;
    this.count = raw.nodes.leaf.length;
    this.isLarge = this.count >= LARGE;
    this.trees = new Map(); // by how they group the nodes: those that were shown
    this.hasTimes = Object.hasOwn(raw.schedule, "times");
    const { src, dst } = raw.edges;
    this.edgeCount = src.length;
    [this.outStart, this.outEdges] = sortByEnd(src, this.count);
    [this.inStart, this.inEdges] = sortByEnd(dst, this.count);
    this.copyOfEdge = this.#copiesOfEdges();
    this.refused = new Set(raw.refusal?.nodes); // the nodes over which the graph is refused
    this.hasParts = raw.overview.part.some((part) => part >= 0);
  }

  get schedule() { return this.raw.schedule; }
  get times() { return this.raw.schedule.times ?? null; }
  leftOut(node) { return this.raw.schedule.leftOut?.[node] ?? ""; }
  timeSource(node) { return this.raw.schedule.origins[this.raw.schedule.origin[node]]; }
  /** What bounds the kernel of a node on a GPU, and how near it comes to the peak of that; "" where that is not known. */
  bound(node) { return this.raw.schedule.bounds[this.raw.schedule.bound[node]]; }
  get errors() { return this.raw.schedule.errors ?? null; }

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

  /** Say whether a node closes a loop: its output is a loop's way back. */
  isLoopBack(node) {
    this.loopBacks ??= this.raw.texts.map((text) => text.endsWith("NextIteration"));
    return this.loopBacks[this.raw.nodes.op[node]];
  }

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
    return this.raw.explanations.at(node).map((number) => this.sentence(number));
  }

  sentence(number) {
    const [template, ...nodes] = this.raw.sentences.at(number);
    const next = nodes.values();
    return this.raw.templates[template].map((part) =>
      (typeof part === "string" ? part : this.#mention(part, next.next().value)));
  }

  /** List the other members of a node's colocation group. */
  group(node) {
    const { group } = this.raw.nodes;
    if (group[node] < 0) return [];
    this.groups ??= sortByEnd(group, group.reduce((most, number) => Math.max(most, number), 0) + 1);
    return partOf(this.groups, group[node]).filter((other) => other !== node);
  }

  /** List the copies of what a node makes, and of what it uses. */
  copiesOf(node) {
    const { producer, consumers } = this.raw.copies;
    this.copiesFrom ??= sortByEnd(producer, this.count);
    if (!this.copiesTo) {
      const [starts, places] = sortByEnd(consumers.flat(), this.count);
      const owner = Int32Array.from(consumers.flatMap((nodes, i) => nodes.map(() => i)));
      this.copiesTo = [starts, places.map((place) => owner[place])];
    }
    return { out: partOf(this.copiesFrom, node), into: partOf(this.copiesTo, node) };
  }

  #mention(form, node) {
    const name = this.name(node);
    const variable = `the variable '${this.column("variable", node)}'`;
    return { node, text: [`${name} (${this.op(node)})`, name, variable][form] };
  }

  #copiesOfEdges() {
    const { producer, slot, target, consumers } = this.raw.copies;
    const { src, dst, slot: output } = this.raw.edges;
    const { device } = this.raw.nodes;
    const found = new Int32Array(this.edgeCount).fill(-1);
    for (let i = 0; i < producer.length; i += 1) {
      const out = this.outputs(producer[i]);
      for (const consumer of consumers[i]) {
        if (device[consumer] !== target[i]) continue;
        const into = this.inputs(consumer);
        for (const edge of into.length < out.length ? into : out) {
          if (src[edge] === producer[i] && dst[edge] === consumer && output[edge] === slot[i]) found[edge] = i;
        }
      }
    }
    return found;
  }
}

const NO_DEVICE = { label: "no device", letters: "–", style: "nowhere" };

/** Sort the places of a column by their value: those of value i are from starts[i] up to starts[i + 1]; of -1, none. */
function sortByEnd(ends, count) {
  const starts = new Int32Array(count + 1);
  for (let e = 0; e < ends.length; e += 1) if (ends[e] >= 0) starts[ends[e] + 1] += 1;
  for (let i = 0; i < count; i += 1) starts[i + 1] += starts[i];
  const next = starts.slice();
  const places = new Int32Array(starts[count]);
  for (let e = 0; e < ends.length; e += 1) {
    if (ends[e] < 0) continue;
    places[next[ends[e]]] = e;
    next[ends[e]] += 1;
  }
  return [starts, places];
}

/** List the places that have one value. */
function partOf([starts, places], value) { return [...places.subarray(starts[value], starts[value + 1])]; }
