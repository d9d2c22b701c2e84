"use strict";
// What mouse, touch and keys do to a graph: pan, zoom, walk, open, explain, follow.

const ZOOM = 1.25;
const BORDER = 12; // pixels kept free at the edge of the screen

class Hands {
  /** Listen for a `GraphView`; `onStep(by)` is told the keys that step through what is marked. */
  constructor(graph, { onStep }) {
    this.graph = graph;
    this.svg = graph.svg;
    this.onStep = onStep;
    this.touches = new Map();
    this.#listen();
  }

  #listen() {
    const { svg, graph } = this;
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      graph.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => this.#startPan(event));
    svg.addEventListener("pointermove", (event) => this.#pan(event));
    svg.addEventListener("pointerup", (event) => this.#endPan(event));
    svg.addEventListener("pointercancel", (event) => { this.touches.delete(event.pointerId); this.panning = null; });
    svg.addEventListener("keydown", (event) => this.#key(event));
    // A browser would make an <svg> that listens to focus a stop of its own for the Tab key.
    svg.parentElement.addEventListener("focusin", (event) => graph.focusMoved(event.target));
    svg.addEventListener("pointerover", (event) => this.#hint(event.target.closest(".box")));
  }

  /** Give a box its tooltip once the pointer is on it: thousands of texts less to draw. */
  #hint(box) {
    if (!box || box.querySelector(":scope > title")) return;
    const act = { true: ". Click to close.", false: ". Click to open." }[box.getAttribute("aria-expanded")] ?? "";
    box.append(draw("title", {}, box.getAttribute("aria-label") + act));
  }

  #startPan(event) {
    if (event.button !== 0) return;
    this.touches.set(event.pointerId, [event.clientX, event.clientY]);
    const on = event.target.closest(".into, .box, .wire, .volume");
    this.panning = { x: event.clientX, y: event.clientY, moved: this.touches.size > 1, on };
    this.svg.setPointerCapture(event.pointerId);
  }

  #pan(event) {
    if (!this.panning) return;
    if (this.touches.size > 1) { this.#pinch(event); return; }
    const [dx, dy] = [event.clientX - this.panning.x, event.clientY - this.panning.y];
    if (!this.panning.moved && Math.hypot(dx, dy) < 4) return;
    this.svg.classList.add("panning");
    this.graph.moveBy(dx, dy);
    this.panning = { ...this.panning, x: event.clientX, y: event.clientY, moved: true };
  }

  /** Zoom as two fingers move apart. */
  #pinch(event) {
    const apart = () => {
      const [[x, y], [tx, ty]] = [...this.touches.values()];
      return [Math.hypot(tx - x, ty - y), (x + tx) / 2, (y + ty) / 2];
    };
    const [before] = apart();
    this.touches.set(event.pointerId, [event.clientX, event.clientY]);
    const [after, x, y] = apart();
    const box = this.svg.getBoundingClientRect();
    if (before) this.graph.zoom(after / before, x - box.left, y - box.top);
  }

  #endPan(event) {
    const { panning } = this;
    this.touches.delete(event.pointerId);
    if (this.touches.size) return;
    this.panning = null;
    this.svg.classList.remove("panning");
    if (!panning || panning.moved || !panning.on) return;
    this.graph.press(panning.on);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = this.#keys()[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #keys() {
    const { graph } = this;
    const item = graph.focused;
    const at = graph.visibleItems.indexOf(item);
    const isOpen = graph.open.has(item);
    return {
      ArrowDown: () => this.#walk(graph.visibleItems[at + 1]),
      ArrowUp: () => this.#walk(graph.visibleItems[at - 1]),
      ArrowRight: () => (isOpen ? this.#walk(graph.visibleItems[at + 1]) : graph.tree.isScope(item) && graph.toggle(item)),
      ArrowLeft: () => (isOpen ? graph.toggle(item) : this.#walk(graph.tree.parent[item])),
      Home: () => this.#walk(graph.visibleItems[0]),
      End: () => this.#walk(graph.visibleItems.at(-1)),
      Enter: () => graph.activate(item),
      " ": () => graph.activate(item),
      "+": () => graph.zoom(ZOOM),
      "=": () => graph.zoom(ZOOM),
      "-": () => graph.zoom(1 / ZOOM),
      0: () => graph.fit(),
      i: () => graph.enter(item),
      o: () => graph.leave(),
      n: () => this.onStep(1),
      p: () => this.onStep(-1),
    };
  }

  #walk(item) {
    if (!this.graph.elements.has(item)) return;
    this.graph.elements.get(item).focus({ preventScroll: true });
    this.graph.bringIntoView(item);
  }
}
