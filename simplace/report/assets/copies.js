"use strict";
// What a step sends: collectives, and copies ranked by the decision that causes them, and by bytes.

const FEW_ALIKE = 3; // decisions: from so many on, those alike are one entry

class Copies {
  /** Show copies in a panel; `onFollow(nodes, title)` is told which nodes to mark in the graph. */
  constructor(panel, details, { onFollow }) {
    Object.assign(this, { panel, details, onFollow });
  }

  /** Show what a program sends, where that is much in steps. */
  *show(program) {
    this.program = program;
    const { size, source, target, slot } = program.raw.copies;
    const all = [...size.keys()];
    const crossing = all.filter((copy) => source[copy] !== target[copy]);
    const tensors = crossing.filter((copy) => slot[copy] !== CONTROL).sort((a, b) => size[b] - size[a] || a - b);
    if (program.isLarge) yield;
    const alike = yield* this.#joinAlike();
    const { sent, collectives } = program.raw;
    this.panel.replaceChildren(
      make("h2", {}, "Copies and collectives"),
      make("p", {}, sent.length ? `A step sends ${sent.join("; ")}.` : "Nothing is copied between devices."),
      ...(collectives.kind.length ? [make("h3", {}, "Collectives"), this.#collectives()] : []),
      ...(all.length ? [
        make("h3", {}, "Copies by the decision that causes them"),
        make("p", { class: "faint" }, "A copy is listed under the decision at one of its ends: a request or a missing kernel ranks before a default."),
        ...this.#causes(alike),
      ] : []),
      ...(tensors.length ? [make("h3", {}, "Copies by bytes"), this.#table(tensors)] : []),
    );
  }

  /** List the collectives, the largest first. */
  #collectives() {
    const { kind, members, devices, participants, type, size, copies } = this.program.raw.collectives;
    const largest = Math.max(1, ...size);
    const named = (i) => this.program.text(kind[i]);
    const labels = (i) => devices[i].map((device) => this.program.deviceSign(device).label).join(" ");
    const order = [...kind.keys()].sort((a, b) => size[b] - size[a] || a - b);
    return new SortedTable([
      { title: "collective", key: named, cell: named },
      { title: "between", key: labels, cell: (i) => [...devices[i].flatMap((device) => [badge(this.program.deviceSign(device)), " "]),
        participants[i] > devices[i].length ? `and ${participants[i] - devices[i].length} elsewhere` : ""] },
      { title: "type", key: (i) => this.program.text(type[i]), cell: (i) => this.program.text(type[i]) },
      { title: "each", align: "right", key: (i) => size[i], cell: (i) => [bar100(Math.max(0, size[i]) / largest), bytes(size[i])] },
      { title: "by", key: (i) => members[i].map((node) => this.program.name(node)).join(" "),
        cell: (i) => [copies[i].length ? `${plural(copies[i].length, "copy")} to and from ` : "", ...this.#some(members[i]),
          this.#follow(() => this.onFollow(members[i], `${named(i)} of ${this.program.name(members[i][0])}`))] },
    ], order).element;
  }

  /** Link the first nodes of some, and count the others. */
  #some(nodes) {
    return [...this.details.spelled(nodes.slice(0, 3).flatMap((node) => [{ node, text: this.program.name(node) }, " "])),
      nodes.length > 3 ? `and ${nodes.length - 3} more ` : ""];
  }

  #follow(act) {
    return make("button", { type: "button", class: "follow", title: "Mark its nodes in the graph and step through them", onclick: act }, "follow");
  }

  /**
   * Join, in steps, the decisions that differ by their devices and by the numbers in names alone, from three on as in
   * figures; return lists of decisions, those that cost most first.
   */
  *#joinAlike() {
    const { rule, at, size, copies, sentence, node } = this.program.raw.causes;
    const found = new Map();
    for (const i of node.keys()) {
      const words = this.program.sentence(sentence[i]).map((part) => part.text ?? part).join("").replace(/\d+/g, "#");
      const key = [rule[i], at[i], size[i], copies[i].length, words].join(" ");
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(i);
      if (this.program.isLarge && i % 500 === 499) yield;
    }
    const areJoined = (list) => list.length >= FEW_ALIKE && new Set(list.map((i) => this.program.device(node[i]))).size === list.length;
    return [...found.values()].flatMap((list) => (areJoined(list) ? [list] : list.map((i) => [i]))).sort((one, other) => this.#sumBytes(other) - this.#sumBytes(one) || one[0] - other[0]);
  }

  /** List decisions with what they cost; of those alike the first one stands for all, which it opens to. */
  #causes(alike) {
    const { causes } = this.program.raw;
    const largest = Math.max(1, ...alike.map((list) => this.#sumBytes(list)));
    const entry = (list) => {
      const [first] = list;
      const rule = this.program.page.rules[this.program.text(causes.rule[first])];
      const copies = list.flatMap((i) => causes.copies[i]);
      const isOne = list.length === 1;
      const body = make("div");
      const element = make("details", { class: "cause" },
        make("summary", {},
          make("span", { class: "size" }, this.#sum(copies)),
          badge(rule), " ", make("b", {}, `${plural(copies.length, "copy")}${isOne ? "" : `, ${causes.copies[first].length} for each of ${this.#nameEnds(list)}`}: `),
          ...this.details.spelled(this.program.sentence(causes.sentence[first])),
          isOne ? "" : make("span", { class: "faint" }, ` And ${list.length - 1} alike.`),
          causes.at[first] ? make("span", { class: "faint" }, ` ${visible(this.program.text(causes.at[first]))}`) : "",
          make("div", {}, bar100(this.#sumBytes(list) / largest))),
        body);
      element.addEventListener("toggle", () => {
        if (body.childElementCount) return;
        body.append(...(isOne ? [this.#table(copies)] : list.map((i) => entry([i]))));
      });
      return element;
    };
    return this.#growing(alike, entry, make("div"));
  }

  #sumBytes(list) {
    return list.reduce((total, i) => total + this.program.raw.causes.size[i], 0);
  }

  /** Name the first and the last device of decisions. */
  #nameEnds(list) {
    const devices = list.map((i) => this.program.device(this.program.raw.causes.node[i])).sort((one, other) => one - other);
    return [devices[0], devices.at(-1)].map((device) => this.program.deviceSign(device).label).join(" … ");
  }

  /** Spell the bytes of copies, with a plus where some are unknown. */
  #sum(copies) {
    const { size, slot } = this.program.raw.copies;
    const known = copies.filter((copy) => size[copy] >= 0);
    const sum = bytes(known.reduce((total, copy) => total + size[copy], 0));
    if (known.length === copies.length) return sum;
    return known.some((copy) => slot[copy] !== CONTROL) ? `≥ ${sum}` : "unknown size";
  }

  #table(copies) {
    const { producer, slot, source, target, type, size, consumers } = this.program.raw.copies;
    const largest = copies.reduce((most, copy) => Math.max(most, size[copy]), 1);
    const isControl = (copy) => slot[copy] === CONTROL;
    const tensor = (copy) => this.program.name(producer[copy]) + (isControl(copy) ? "" : `:${slot[copy]}`);
    const device = (number) => this.program.deviceSign(number);
    const kind = (copy) => (isControl(copy) ? "control signal" : this.program.text(type[copy]));
    return new SortedTable([
      { title: "copy", key: (copy) => `${device(source[copy]).label} → ${device(target[copy]).label}`, cell: (copy) => [badge(device(source[copy])), " → ", badge(device(target[copy]))] },
      { title: "tensor", key: tensor, cell: (copy) => this.details.spelled([{ node: producer[copy], text: tensor(copy) }]) },
      { title: "type", key: kind, cell: kind },
      { title: "size", align: "right", key: (copy) => size[copy], text: (copy) => (isControl(copy) ? 0 : Math.max(size[copy], 0) || bytes(size[copy])),
        cell: (copy) => [bar100(Math.max(0, size[copy]) / largest), isControl(copy) ? "0 B" : bytes(size[copy])] },
      { title: "used by", key: (copy) => consumers[copy].map((node) => this.program.name(node)).join(" "),
        cell: (copy) => [...this.#some(consumers[copy]), this.#follow(() => this.onFollow([producer[copy], ...consumers[copy]], `copy of ${tensor(copy)}`))] },
    ], copies).element;
  }

  /** Fill a container with the first entries; a button adds more. */
  #growing(values, entry, container, around = container) {
    let shown = 0;
    const button = make("button", { type: "button", onclick: () => grow() });
    const grow = () => {
      container.append(...values.slice(shown, shown + ROWS).map(entry));
      shown = Math.min(values.length, shown + ROWS);
      button.textContent = `show more (${(values.length - shown).toLocaleString("en")} left)`;
      button.hidden = shown >= values.length;
    };
    grow();
    return [around, button];
  }
}

/** Draw a bar of a share of 0 to 1. */
function bar100(share) {
  const element = make("span", { class: "bar-cell", "aria-hidden": "true", hidden: share <= 0 });
  element.style.width = `${Math.round(share * 90)}px`;
  return element;
}
