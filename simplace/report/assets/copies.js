"use strict";
// What a step sends: collectives, and copies ranked by the decision that causes them, and by bytes.

const ROWS = 50;

class Copies {
  constructor(panel, details) {
    this.panel = panel;
    this.details = details;
  }

  show(program) {
    this.program = program;
    const { size, source, target, slot } = program.raw.copies;
    const all = [...size.keys()];
    const crossing = all.filter((copy) => source[copy] !== target[copy]);
    const tensors = crossing.filter((copy) => slot[copy] !== CONTROL).sort((a, b) => size[b] - size[a] || a - b);
    const { sent, collectives } = program.raw;
    this.panel.replaceChildren(
      make("h2", {}, "Copies and collectives"),
      make("p", {}, sent.length ? `A step sends ${sent.join("; ")}.` : "Nothing is copied between devices."),
      ...(collectives.kind.length ? [make("h3", {}, "Collectives"), this.#collectives()] : []),
      ...(all.length ? [
        make("h3", {}, "Copies by the decision that causes them"),
        make("p", { class: "faint" }, "A copy is listed under the decision at one of its ends: a request or a missing kernel ranks before a default."),
        ...this.#causes(),
      ] : []),
      ...(tensors.length ? [make("h3", {}, "Copies by bytes"), this.#table(tensors)] : []),
    );
  }

  /** List the collectives, the largest first. */
  #collectives() {
    const { kind, members, devices, participants, type, size, copies } = this.program.raw.collectives;
    const largest = Math.max(1, ...size);
    const body = make("tbody");
    const row = (i) => make("tr", {},
      make("td", {}, this.program.text(kind[i])),
      make("td", {}, ...devices[i].flatMap((device) => [badge(this.program.deviceSign(device)), " "]),
        participants[i] > devices[i].length ? `and ${participants[i] - devices[i].length} elsewhere` : ""),
      make("td", {}, this.program.text(type[i])),
      make("td", { class: "right" }, bar100(Math.max(0, size[i]) / largest), bytes(size[i])),
      make("td", {}, copies[i].length ? `${plural(copies[i].length, "copy")} to and from ` : "",
        ...this.details.spelled(members[i].slice(0, 3).flatMap((node) => [{ node, text: this.program.name(node) }, " "])),
        members[i].length > 3 ? `and ${members[i].length - 3} more` : ""));
    const heads = ["collective", "between", "type", "each", "by"].map((title) => make("th", { scope: "col", class: title === "each" ? "right" : "" }, title));
    const table = make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
    const order = [...kind.keys()].sort((a, b) => size[b] - size[a] || a - b);
    return make("div", {}, ...this.#growing(order, row, body, table));
  }

  #causes() {
    const { causes } = this.program.raw;
    const largest = Math.max(1, ...causes.size);
    const cause = (i) => {
      const rule = this.program.page.rules[this.program.text(causes.rule[i])];
      const body = make("div");
      const element = make("details", { class: "cause" },
        make("summary", {},
          make("span", { class: "size" }, this.#sum(causes.copies[i])),
          badge(rule), " ", make("b", {}, `${plural(causes.copies[i].length, "copy")}: `),
          ...this.details.spelled(this.program.sentence(causes.sentence[i])),
          causes.at[i] ? make("span", { class: "faint" }, ` ${visible(this.program.text(causes.at[i]))}`) : "",
          make("div", {}, bar100(causes.size[i] / largest))),
        body);
      element.addEventListener("toggle", () => { if (!body.childElementCount) body.append(this.#table(causes.copies[i])); });
      return element;
    };
    return this.#growing([...causes.node.keys()], cause, make("div"));
  }

  /** Spell the bytes of copies, with a plus where some are unknown. */
  #sum(copies) {
    const { size, slot } = this.program.raw.copies;
    const known = copies.filter((copy) => size[copy] >= 0);
    const sum = bytes(known.reduce((total, copy) => total + size[copy], 0));
    if (known.length === copies.length) return sum;
    return known.some((copy) => slot[copy] !== CONTROL) ? `${sum} +?` : "? B";
  }

  #table(copies) {
    const { raw } = this.program;
    const largest = Math.max(1, ...copies.slice(0, ROWS).map((copy) => raw.copies.size[copy]));
    const body = make("tbody");
    const row = (copy) => {
      const [from, to] = [raw.copies.source[copy], raw.copies.target[copy]].map((device) => this.program.deviceSign(device));
      const control = raw.copies.slot[copy] === CONTROL;
      const consumers = raw.copies.consumers[copy];
      return make("tr", {},
        make("td", {}, badge(from), " → ", badge(to)),
        make("td", {}, ...this.details.spelled([{ node: raw.copies.producer[copy], text: this.program.name(raw.copies.producer[copy]) + (control ? "" : `:${raw.copies.slot[copy]}`) }])),
        make("td", {}, control ? "control signal" : this.program.text(raw.copies.type[copy])),
        make("td", { class: "right" }, bar100(Math.max(0, raw.copies.size[copy]) / largest), control ? "0 B" : bytes(raw.copies.size[copy])),
        make("td", {}, ...this.details.spelled(consumers.slice(0, 3).flatMap((node) => [{ node, text: this.program.name(node) }, " "])),
          consumers.length > 3 ? `and ${consumers.length - 3} more` : ""));
    };
    const heads = ["copy", "tensor", "type", "size", "used by"].map((title) => make("th", { scope: "col", class: title === "size" ? "right" : "" }, title));
    const table = make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
    return make("div", {}, ...this.#growing(copies, row, body, table));
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
