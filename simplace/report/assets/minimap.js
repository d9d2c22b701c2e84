"use strict";
// A small map of the whole graph with a frame around what the screen shows; it is there where the screen shows a part
// and has room for it, unless it is put away.

const MAP_WIDTH = 168;
const MAP_HEIGHT = 112;
const PUT_AWAY = "simplace-map-put-away"; // what the browser remembers it by

class Minimap {
  /** Draw into an `<svg>`; a checkbox says whether the map may be there, which the browser remembers. */
  constructor(svg, checkbox) {
    Object.assign(this, { svg, checkbox });
    checkbox.checked = recall(PUT_AWAY) === null;
    checkbox.addEventListener("change", () => {
      remember(PUT_AWAY, checkbox.checked ? null : "yes");
      if (this.graph) this.move(this.graph);
    });
    const move = (event) => { if (event.buttons) this.#look(event); };
    svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); this.#look(event); });
    svg.addEventListener("pointermove", move);
  }

  /** Draw the boxes that are outermost, and those right inside. */
  draw(graph) {
    this.graph = graph;
    const { width, height } = graph.size;
    this.scale = Math.min(MAP_WIDTH / Math.max(1, width), MAP_HEIGHT / Math.max(1, height));
    const rect = ({ x, y, width: w, height: h }, left = 0, top = 0) => {
      const [px, py, pw, ph] = [left + x, top + y, w, h].map((value) => (value * this.scale).toFixed(1));
      return draw("rect", { x: px, y: py, width: Math.max(pw, 1), height: Math.max(ph, 1) });
    };
    const boxes = graph.shown.boxes.flatMap((box) => [rect(box),
      ...(box.inner?.boxes ?? []).map((inner) => rect(inner, box.x + (box.width - box.inner.width) / 2, box.y + HEADER + PADDING))]);
    this.frame = draw("rect", { class: "frame" });
    this.svg.replaceChildren(...boxes, this.frame);
    this.svg.setAttribute("width", Math.max(4, width * this.scale));
    this.svg.setAttribute("height", Math.max(4, height * this.scale));
    this.move(graph);
  }

  /** Move the frame to what the screen shows. */
  move(graph) {
    const { screen, at, size } = graph;
    if (!screen?.width || !this.frame) return;
    const [left, top] = [-at.x / at.scale, -at.y / at.scale];
    const [right, bottom] = [left + screen.width / at.scale, top + screen.height / at.scale];
    const isLow = screen.height < 2 * MAP_HEIGHT;
    this.svg.toggleAttribute("hidden", !this.checkbox.checked || isLow || (left <= 0 && top <= 0 && right >= size.width && bottom >= size.height));
    const clip = (value, most) => Math.min(Math.max(value, 0), most) * this.scale;
    const [x, y] = [clip(left, size.width), clip(top, size.height)];
    const [width, height] = [clip(right, size.width) - x, clip(bottom, size.height) - y];
    for (const [name, value] of Object.entries({ x, y, width, height })) this.frame.setAttribute(name, Math.max(0, value).toFixed(1));
  }

  /** Bring the place under the pointer to the middle of the screen. */
  #look(event) {
    const { graph } = this;
    const box = this.svg.getBoundingClientRect();
    const { at, screen } = graph;
    graph.moveBy(
      screen.width / 2 - ((event.clientX - box.left) / this.scale) * at.scale - at.x,
      screen.height / 2 - ((event.clientY - box.top) / this.scale) * at.scale - at.y);
  }
}

/** Return what the browser remembers by a key, null for nothing: also where it keeps nothing for this page. */
function recall(key) {
  return withStorage((storage) => storage.getItem(key), null);
}

/** Let the browser remember a value, or forget it where it is null. */
function remember(key, value) {
  withStorage((storage) => (value === null ? storage.removeItem(key) : storage.setItem(key, value)), undefined);
}

/** Return what `act` returns of the browser's storage, `otherwise` where a page such as one in a notebook has none. */
function withStorage(act, otherwise) {
  try {
    return act(localStorage);
  } catch (error) {
    if (!["SecurityError", "QuotaExceededError"].includes(error.name)) throw error;
    return otherwise;
  }
}
