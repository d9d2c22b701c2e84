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
    const isMatch = new Uint8Array(tree.order.length);
    for (const node of nodes) isMatch[node] = 1;
    this.before = new Int32Array(tree.order.length + 1);
    tree.order.forEach((node, i) => { this.before[i + 1] = this.before[i] + isMatch[node]; });
  }

  /** Return how many matches an item holds. */
  in(item) { return this.nodes.length ? this.before[this.tree.last[item]] - this.before[this.tree.first[item]] : 0; }

  /** Mark a drawn box, or take its mark off; an open one shows its matches by itself. */
  mark(item, element, width) {
    const isOpen = element.getAttribute("aria-expanded") === "true";
    const count = isOpen ? 0 : this.in(item);
    element.querySelector(":scope > .pill")?.remove();
    element.classList.toggle("match", count > 0);
    if (!count) { element.removeAttribute("aria-description"); return; }
    const isScope = this.tree.isScope(item);
    element.setAttribute("aria-description", isScope ? `holds ${plural(count, "match")}` : "matches the search");
    if (isScope) element.append(pill(plural(count, "match"), width));
  }
}

/** Draw a count on the upper right corner of a box, above its name. */
function pill(text, boxWidth) {
  const width = textWidth(text, 11) + 12;
  return draw("g", { class: "pill", "aria-hidden": "true", transform: `translate(${boxWidth - width + 6},${-PILL + 3})` },
    draw("rect", { width, height: PILL, rx: PILL / 2 }),
    draw("text", { x: width / 2, y: PILL / 2 + 4 }, text));
}
