"use strict";
// The search: nodes whose name, op, device or line holds every word, in a list that the keyboard walks.

const RESULTS = 50;

class Search {
  constructor(input, list, { onPick, onSay }) {
    Object.assign(this, { input, list, onPick, onSay, found: [], at: -1 });
    input.addEventListener("input", () => this.#look());
    input.addEventListener("keydown", (event) => this.#key(event));
    input.addEventListener("focus", () => this.input.value && this.#look());
    input.addEventListener("blur", () => this.#hide());
    list.addEventListener("mousedown", (event) => this.#pressed(event));
  }

  use(program) {
    this.program = program;
    this.texts = null;
    this.#hide();
  }

  /** List the nodes that hold every word: names that end in the words first, then short ones. */
  matches(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    this.texts ??= Array.from({ length: this.program.count }, (_, node) => this.#text(node));
    const last = words.at(-1);
    const found = [];
    for (let node = 0; node < this.texts.length; node += 1) {
      if (words.every((word) => this.texts[node].includes(word))) found.push(node);
    }
    const rank = (node) => {
      const leaf = this.program.leafName(node).toLowerCase();
      return (leaf === last ? 0 : leaf.startsWith(last) ? 1 : leaf.includes(last) ? 2 : 3) * 1e6 + Math.min(this.program.name(node).length, 1e5);
    };
    const ranks = new Map(found.map((node) => [node, rank(node)]));
    return found.sort((one, other) => ranks.get(one) - ranks.get(other) || one - other);
  }

  #text(node) {
    const { program } = this;
    const device = program.deviceSign(program.device(node)).label;
    return `${program.name(node)} ${program.op(node)} ${device} ${program.column("at", node)}`.toLowerCase();
  }

  #look() {
    const all = this.matches(this.input.value);
    this.found = all.slice(0, RESULTS);
    this.at = this.found.length ? 0 : -1;
    const rows = this.found.map((node, i) => make("li", { role: "option", id: `found-${i}`, "aria-selected": String(i === this.at) },
      badge(this.program.deviceSign(this.program.device(node))), " ",
      make("bdi", {}, elide(visible(this.program.name(node)), 90)), make("span", { class: "faint" }, this.program.op(node))));
    const rest = all.length - rows.length;
    const note = !all.length ? "no node holds all these words" : rest > 0 ? `and ${rest.toLocaleString("en")} more` : "";
    this.list.replaceChildren(...rows, note ? make("li", { class: "more", role: "presentation" }, note) : "");
    this.#shown(Boolean(this.input.value.trim()));
    this.onSay(all.length ? plural(all.length, "node") : note);
  }

  #shown(isShown) {
    this.list.hidden = !isShown;
    this.input.setAttribute("aria-expanded", String(isShown));
    this.#mark();
  }

  #hide() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  #mark() {
    [...this.list.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === this.at)));
    if (this.at < 0) { this.input.removeAttribute("aria-activedescendant"); return; }
    this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
    this.list.children[this.at].scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      event.preventDefault();
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.#mark();
    } else if (event.key === "Enter" && this.at >= 0 && !this.list.hidden) {
      event.preventDefault();
      this.#pick(this.at);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      this.#hide();
    }
  }

  #pressed(event) {
    event.preventDefault();
    const row = event.target.closest("[role=option]");
    if (row) this.#pick([...this.list.children].indexOf(row));
  }

  #pick(place) {
    this.#hide();
    this.onPick(this.found[place]);
  }
}
