"use strict";
// The panel about one node: why it is there, its colocation group, its kernels, its copies, its line.

const SHOWN = 12; // of a list, before a button shows the rest

class Details {
  constructor(panel, { onGo, onClose }) {
    this.panel = panel;
    this.onGo = onGo;
    this.onClose = onClose;
  }

  show(program, node) {
    this.program = program;
    const { copies, edges } = program.raw;
    const { out, into } = program.copiesOf(node);
    const group = program.group(node);
    const ends = (list, end) => [...list].map((edge) => [edges[end][edge], program.isControl(edge) ? "control" : ""]);
    this.panel.replaceChildren(
      this.#closing(),
      make("h2", {}, make("bdi", {}, ...breakable(visible(program.name(node))))),
      this.#facts(node),
      make("h3", {}, "Why it is on this device"),
      make("ol", { id: "reasons" }, ...program.explanation(node).map((parts) => make("li", {}, ...this.spelled(parts)))),
      ...this.#cluster(node),
      ...this.#list("Colocation group", group.map((other) => [other, ""]), "Not colocated with any other op."),
      ...this.#list("Inputs", ends(program.inputs(node), "src"), "None."),
      ...this.#list("Outputs", ends(program.outputs(node), "dst"), "None."),
      ...this.#copies("Copied from it", out, (copy) => copies.consumers[copy]),
      ...this.#copies("Copied to it", into, (copy) => [copies.producer[copy]]),
    );
    this.#open();
  }

  /** List copies that share an edge, the largest first. */
  showCopies(program, numbers, title) {
    this.program = program;
    const { copies } = program.raw;
    const order = [...numbers].sort((a, b) => copies.size[b] - copies.size[a] || a - b);
    this.panel.replaceChildren(this.#closing(), make("h2", {}, title), ...this.#copies("Copies", order, (copy) => [copies.producer[copy], ...copies.consumers[copy]]));
    this.#open();
  }

  #closing() {
    return make("button", { type: "button", class: "close", "aria-label": "Close", title: "Close (Esc)", onclick: () => this.close() }, "×");
  }

  #open() {
    this.panel.hidden = false;
    this.panel.scrollTop = 0;
  }

  /** List the ops that XLA compiles together with a call. */
  #cluster(node) {
    const { clusters } = this.program.raw;
    const number = clusters.node.indexOf(node);
    if (number < 0) return [];
    const ops = [...clusters.ops[number].keys()];
    const text = (column) => (i) => visible(this.program.text(clusters[column][number][i]));
    const lacking = ops.filter((i) => !clusters.isSupported[number][i]);
    return [
      make("h3", {}, "Compiled by XLA ", make("span", { class: "count" }, plural(ops.length, "op"))),
      make("p", {}, `${visible(this.program.text(clusters.function[number]))} is compiled by XLA into one kernel: each of its ops together with ${plural(ops.length - 1, "other")}.`),
      lacking.length ? make("p", { class: "note" }, `XLA has no kernel for ${lacking.map(text("ops")).join(", ")}: TensorFlow refuses the call.`) : "",
      new SortedTable([
        { title: "op", key: text("ops"), cell: text("ops") },
        { title: "name", key: text("names"), cell: (i) => make("bdi", { title: text("names")(i) }, ...breakable(elide(text("names")(i), 60))) },
        { title: "line", key: text("at"), cell: text("at") },
      ], ops).element,
    ];
  }

  close() {
    this.panel.hidden = true;
    this.onClose();
  }

  /** Turn the parts of a sentence into elements: nodes become links that lead to them. */
  spelled(parts) {
    return parts.map((part) => (typeof part === "string" ? visible(part) : this.#link(part.node, part.text)));
  }

  #link(node, text) {
    return make("a", { href: `#node-${node}`, class: "link", "data-node": node, title: visible(text) }, make("bdi", {}, ...breakable(elide(visible(text), 80))));
  }

  #facts(node) {
    const { program } = this;
    const device = program.deviceSign(program.device(node));
    const rule = program.page.rules[program.rule(node)];
    const facts = [
      ["Runs on", [badge(device, true), " ", device.label]],
      ["Because", rule ? [badge(rule, true), " ", rule.label] : []],
      ["Op", [program.op(node)]],
      ["Requested", [program.column("requested", node) || "no device"]],
      ["Line", [program.column("at", node), this.#excerpt(program.column("at", node))]],
      ["Device line", [program.column("deviceAt", node), this.#excerpt(program.column("deviceAt", node))]],
      ["Kernels", [program.column("kernels", node) || "none here"]],
      ["Output types", [program.column("outputs", node)]],
      ["In function", [program.column("function", node)]],
      ["Takes", program.times ? [program.leftOut(node) || this.#time(node)] : []],
    ];
    return make("dl", {}, ...facts.filter(([, value]) => value.some(Boolean)).flatMap(([term, value]) => [
      make("dt", {}, term),
      make("dd", {}, ...value.flatMap((part) => (typeof part === "string" ? breakable(visible(part)) : [part]))),
    ]));
  }

  #time(node) {
    const { program } = this;
    const [time, error] = [program.times[node], program.errors[node]];
    const bound = program.bound(node);
    return duration(time) + plusMinus(error) + (error ? `, ${program.timeSource(node)}` : "") + (bound ? `; ${bound}` : "");
  }

  /** Show a line of the user's program with the lines around it. */
  #excerpt(place) {
    const end = place.lastIndexOf(":");
    const [file, line] = [place.slice(0, end), Number(place.slice(end + 1))];
    const { sources } = this.program.page;
    const lines = Object.hasOwn(sources, file) ? sources[file] : {};
    const shown = [line - 1, line, line + 1].filter((number) => number in lines);
    if (!(line in lines)) return "";
    const indent = Math.min(...shown.filter((number) => lines[number].trim()).map((number) => lines[number].search(/\S/)));
    return make("pre", { class: "excerpt" }, ...shown.flatMap((number) => {
      const text = `${number} ${lines[number].slice(Number.isFinite(indent) ? indent : 0).replace(HIDDEN, UNSHOWABLE)}`;
      return [number === line ? make("b", {}, text) : text, number === shown.at(-1) ? "" : "\n"];
    }));
  }

  #list(title, nodes, none) {
    const heading = make("h3", {}, title, " ", nodes.length ? make("span", { class: "count" }, nodes.length.toLocaleString("en")) : null);
    if (!nodes.length) return [heading, make("p", { class: "faint" }, none)];
    const entry = ([node, note]) => make("li", {}, badge(this.program.deviceSign(this.program.device(node))), " ",
      this.#link(node, `${this.program.name(node)} (${this.program.op(node)})`), note ? ` ${note}` : "");
    return [heading, this.#shortened(nodes, entry)];
  }

  #copies(title, numbers, ends) {
    if (!numbers.length) return [];
    const { copies } = this.program.raw;
    const entry = (copy) => {
      const [from, to] = [copies.source[copy], copies.target[copy]].map((device) => this.program.deviceSign(device));
      const memory = ["sourceMemory", "targetMemory"].map((key) => this.program.text(copies[key][copy]));
      const where = from === to ? ` from ${memory[0]} to ${memory[1]} memory` : "";
      const what = copies.slot[copy] === CONTROL ? "control signal" : `${this.program.text(copies.type[copy])}, ${bytes(copies.size[copy])}`;
      return make("li", {}, badge(from), " → ", badge(to), ` ${what}${where}: `, ...ends(copy).slice(0, 4).map((node) => [this.#link(node, this.program.name(node)), " "]).flat());
    };
    return [make("h3", {}, title, " ", make("span", { class: "count" }, String(numbers.length))), this.#shortened(numbers, entry)];
  }

  #shortened(values, entry) {
    const list = make("ul", {}, ...values.slice(0, SHOWN).map(entry));
    if (values.length <= SHOWN) return list;
    const more = make("button", { type: "button", onclick: () => list.replaceChildren(...values.slice(0, 2000).map(entry)) },
      `show ${Math.min(values.length, 2000) === values.length ? "all" : "2,000 of"} ${values.length.toLocaleString("en")}`);
    list.append(make("li", {}, more));
    return list;
  }
}
