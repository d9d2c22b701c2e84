"use strict";
// The search: nodes whose name, op, device or line holds every word, in a list that the keyboard walks.

const RESULTS = 50; // that the list shows at a time; walking past the last shows more
const PAGE_OF_LIST = 10;
const NODES = 2 ** 24; // that a program has fewer of
const NOTHING = "no match";

class Search {
  /**
   * Search from an input into a list. `steps` holds the buttons to the match before and after, and to the end, and the
   * place. What is followed, such as the nodes of a finding, is stepped through as matches are.
   */
  constructor(input, list, steps, { onPick, onFound, onSay }) {
    Object.assign(this, { input, list, steps, onPick, onFound, onSay, all: [], found: [], at: -1, asked: 0 });
    input.addEventListener("input", () => this.#look());
    input.addEventListener("keydown", (event) => this.#key(event));
    input.addEventListener("focus", () => this.#shown(Boolean(this.input.value.trim())));
    input.addEventListener("blur", () => this.#hide());
    list.addEventListener("mousedown", (event) => this.#pressed(event));
    const [before, after, stop] = steps.querySelectorAll("button");
    stop.addEventListener("click", () => this.stop());
    for (const [button, by] of [[before, -1], [after, 1]]) {
      button.addEventListener("click", () => { this.step(by); button.focus(); }); // to be pressed again
    }
  }

  /** Search a program from now on, for what the input says. */
  *use(program) {
    this.program = program;
    this.texts = null;
    yield* this.#find();
    this.#hide();
  }

  /** Mark nodes in place of a search, and go to the first of them. */
  follow(nodes, title) {
    this.mark(nodes, title);
    this.step(1);
  }

  /** Mark nodes in place of a search. */
  mark(nodes, title) {
    this.asked += 1; // what is searched for meanwhile is not wanted any more
    this.input.value = "";
    this.followed = title;
    this.#take([...new Set(nodes)]);
    this.#hide();
  }

  /** End a search, or what is followed. */
  stop() {
    this.input.value = "";
    this.#look();
    this.#hide();
  }

  /** Search, in steps, for words as if they were typed. */
  *seek(words) {
    if (this.input.value === words && !this.followed) return;
    this.input.value = words;
    yield* this.#find();
  }

  /** Go to the match before (-1) or after (1) the last one shown, round and round. */
  step(by) {
    if (!this.all.length) return;
    const count = this.all.length;
    this.shownAt = this.shownAt < 0 ? (by > 0 ? 0 : count - 1) : (this.shownAt + by + count) % count;
    this.#visit(this.shownAt);
  }

  /** List, in steps, the nodes that hold every word: names that end in the words first, then short ones. */
  *matches(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length || !this.program) return [];
    const { program } = this;
    if (!this.texts) {
      this.texts = new Array(program.raw.texts.length).fill("");
      yield* lookAtEach(this.texts.length, (i) => { this.texts[i] = program.raw.texts[i].toLowerCase(); });
    }
    const isLeft = new Uint8Array(program.count).fill(1);
    for (const word of words) yield* this.#narrow(isLeft, word);
    return yield* this.#ranked(isLeft, words.at(-1));
  }

  /** Leave the nodes that hold a word: each text is looked at once, however many nodes have it. */
  *#narrow(isLeft, word) {
    const { program } = this;
    const { scope, leaf, op, at, device } = program.raw.nodes;
    const holds = yield* this.#which((text) => text.includes(word));
    const isDevice = program.page.devices.map((sign) => sign.label.toLowerCase().includes(word));
    const { clusters } = program.raw;
    const compiled = new Set(clusters.node.filter((_, i) => word === "xla" || clusters.ops[i].some((number) => holds[number])));
    const [ends, begins] = yield* this.#across(word);
    yield* lookAtEach(isLeft.length, (node) => {
      if (!isLeft[node] || holds[leaf[node]] || holds[scope[node]] || holds[op[node]] || holds[at[node]] || isDevice[device[node]]) return;
      if (ends[scope[node]] && begins[leaf[node]]) return;
      if (!compiled.has(node)) isLeft[node] = 0;
    });
  }

  /** Tell of each text whether something holds. */
  *#which(holds) {
    const { texts } = this;
    const found = new Uint8Array(texts.length);
    yield* lookAtEach(texts.length, (i) => { found[i] = holds(texts[i]) ? 1 : 0; });
    return found;
  }

  /** Tell which scopes end, and which own names begin, in such a way that both together hold a word. */
  *#across(word) {
    const end = word.lastIndexOf("/") + 1;
    if (!end) return [[], []];
    const [head, tail] = [word.slice(0, end), word.slice(end)];
    return [yield* this.#which((text) => text.endsWith(head)), yield* this.#which((text) => text.startsWith(tail))];
  }

  /** Sort nodes: own names that are, begin with, contain the last word first; then short names; then by number. */
  *#ranked(isLeft, last) {
    const { scope, leaf } = this.program.raw.nodes;
    const { texts } = this;
    const keys = new Float64Array(isLeft.length);
    let count = 0;
    yield* lookAtEach(isLeft.length, (node) => {
      if (!isLeft[node]) return;
      const own = texts[leaf[node]];
      const kind = own === last ? 0 : own.startsWith(last) ? 1 : own.includes(last) ? 2 : 3;
      keys[count] = (kind * 1e6 + Math.min(texts[scope[node]].length + own.length, 1e5)) * NODES + node;
      count += 1;
    });
    const sorted = keys.subarray(0, count).sort();
    const found = [];
    yield* lookAtEach(count, (i) => { found.push(sorted[i] % NODES); });
    return found;
  }

  /** Search, in steps, for what was typed; what is typed, or followed, meanwhile comes in its place. */
  #look() {
    const asked = this.asked += 1;
    const isWanted = () => this.asked === asked;
    const find = () => this.#find(isWanted);
    const ifWanted = function* () { if (isWanted()) yield* find(); };
    doInSteps(ifWanted(), () => { if (isWanted()) this.#tell(); });
  }

  /** Show what was found, and say how much. */
  #tell() {
    this.#shown(Boolean(this.input.value.trim()) && this.input.matches(":focus"));
    this.onSay(this.all.length ? plural(this.all.length, "node") : this.input.value.trim() ? NOTHING : "No search.");
  }

  *#find(isWanted = () => true) {
    const nodes = yield* this.matches(this.input.value);
    if (!isWanted()) return;
    this.followed = "";
    this.#take(nodes);
  }

  #take(nodes) {
    this.all = nodes;
    this.found = [];
    this.at = this.all.length ? 0 : -1;
    this.shownAt = -1;
    this.list.replaceChildren();
    this.#grow();
    this.#count();
    this.onFound(this.all);
  }

  /** List some matches more, and say how many are left. */
  #grow() {
    const first = this.found.length;
    const more = this.all.slice(first, first + RESULTS);
    const rows = more.map((node, i) => make("li", { role: "option", id: `found-${first + i}` },
      badge(this.program.deviceSign(this.program.device(node))), " ",
      make("bdi", {}, ...breakable(elide(visible(this.program.name(node)), 90))), make("span", { class: "faint" }, this.program.op(node))));
    this.found.push(...more);
    const rest = this.all.length - this.found.length;
    const note = !this.all.length ? NOTHING : rest > 0 ? `and ${rest.toLocaleString("en")} more` : "";
    this.list.querySelector(".more")?.remove();
    const role = this.all.length ? { role: "presentation" } : { role: "option", "aria-disabled": "true" }; // a list box has one
    this.list.append(...rows, note ? make("li", { class: "more", ...role }, note) : "");
  }

  /** Say which match is shown, of how many. */
  #count() {
    this.steps.hidden = !this.all.length;
    const of = this.all.length.toLocaleString("en");
    const noun = this.followed ? "node" : "match";
    const place = this.shownAt < 0 ? plural(this.all.length, noun) : `${(this.shownAt + 1).toLocaleString("en")} of ${of}`;
    this.steps.querySelector("span").textContent = this.followed ? `${elide(visible(this.followed), 60)}: ${place}` : place;
  }

  #visit(place) {
    this.shownAt = place;
    this.#count();
    this.onPick(this.all[place], `${this.followed ? "" : "match "}${this.steps.querySelector("span").textContent}: `);
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
    for (const row of this.list.querySelectorAll("[aria-selected=true]")) row.setAttribute("aria-selected", "false");
    if (this.at < 0 || this.list.hidden) { this.input.removeAttribute("aria-activedescendant"); return; }
    const row = this.list.children[this.at];
    row.setAttribute("aria-selected", "true");
    this.input.setAttribute("aria-activedescendant", row.id);
    row.scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE_OF_LIST, PageUp: -PAGE_OF_LIST }[event.key];
    if (step || event.key === "Enter") {
      if (this.all.length || this.input.value.trim()) event.preventDefault();
      doAfterwards(() => (step ? this.#walk(step) : this.#enter(event.shiftKey ? -1 : 1))); // of what was typed before
    } else if (event.key === "Escape" && !this.list.hidden) {
      event.preventDefault(); // which would empty the input: that takes a second Escape
      event.stopPropagation();
      this.#hide();
    } else if (event.key === "Escape" && this.input.value) {
      event.preventDefault();
      event.stopPropagation();
      this.input.value = "";
      this.#look();
    }
  }

  #enter(by) {
    if (this.at < 0) return;
    if (this.list.hidden) this.step(by);
    else this.#pick(this.at);
  }

  #walk(step) {
    if (!this.found.length) return;
    if (this.list.hidden) { this.#shown(true); return; }
    if (this.at + step >= this.found.length) this.#grow();
    const last = this.found.length - 1;
    const isSingle = Math.abs(step) === 1;
    const next = this.at + step;
    this.at = isSingle ? (next + last + 1) % (last + 1) : Math.min(Math.max(next, 0), last);
    this.#mark();
  }

  #pressed(event) {
    event.preventDefault();
    const row = event.target.closest("[role=option]:not([aria-disabled])");
    if (row) this.#pick([...this.list.children].indexOf(row));
  }

  #pick(place) {
    this.#hide();
    this.#visit(place);
  }
}
