"use strict";
// The marks of a search in the graph: a node that matches has a dashed frame, a closed box says how many it holds.

const PILL = 16; // the height of the count on a box

class Marks {
  constructor() {
    this.nodes = [];
  }

  /** Count the matches of a search in a tree: the first `before[i]` nodes of its order hold as many. */
  count(tree, nodes) {
    this.tree = tree;
    this.nodes = nodes;
    this.version = tree.version;
    const isMatch = new Uint8Array(tree.order.length);
    for (const node of nodes) isMatch[node] = 1;
    this.before = new Int32Array(tree.order.length + 1);
    const { order } = tree;
    for (let i = 0; i < order.length; i += 1) this.before[i + 1] = this.before[i] + isMatch[order[i]];
  }

  /** Return how many matches an item holds. */
  in(item) {
    if (!this.nodes.length) return 0;
    if (this.version !== this.tree.version) this.count(this.tree, this.nodes);
    return this.before[this.tree.last[item]] - this.before[this.tree.first[item]];
  }

  /** Mark the drawn boxes, or take their marks off; return the counts to draw above all lines. */
  on(elements, places) {
    const pills = [];
    for (const [item, element] of elements) {
      const isOpen = element.getAttribute("aria-expanded") === "true"; // and shows its matches by itself
      const count = isOpen ? 0 : this.in(item);
      element.classList.toggle("match", count > 0);
      element.removeAttribute("aria-description");
      if (!count) continue;
      const isScope = this.tree.isScope(item);
      element.setAttribute("aria-description", isScope ? `holds ${plural(count, "match")}` : "matches the search");
      if (isScope) pills.push(pill(item, plural(count, "match"), places.get(item)));
    }
    return draw("g", { class: "pills", "aria-hidden": "true" }, ...pills);
  }
}

/** Draw a count on the upper right corner of a box, above its name. */
function pill(item, text, box) {
  const width = textWidth(text, 12, 600) + 12;
  return draw("g", { class: "pill", "data-for": item, transform: `translate(${box.x + box.width - width + 8},${box.y - PILL + 3})` },
    draw("rect", { width, height: PILL, rx: PILL / 2 }),
    draw("text", { x: width / 2, y: PILL / 2 + 4 }, text));
}
