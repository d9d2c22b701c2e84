"use strict";
// What is printed: the summary, the overview, and the reasons of what matters; the screen is afterwards as it was.

const PRINTED_NODES = 3; // of a finding, whose reasons are printed
const PAPER = { width: 700, height: 960 }; // pixels that a sheet of A4 or Letter has within its margins

class Printing {
  /** Prepare `panel` and the graph as the browser begins to print; `showOverview(paper)` returns what shows the rest again. */
  constructor(panel, { graph, details, showOverview }) {
    Object.assign(this, { panel, graph, details, showOverview });
    addEventListener("beforeprint", () => this.#begin());
    addEventListener("afterprint", () => this.#end());
  }

  #begin() {
    if (!this.graph.program) return;
    this.restore = this.showOverview(PAPER);
    const { width, height } = this.graph.size;
    this.graph.svg.setAttribute("viewBox", `-10 -10 ${width + 20} ${height + 20}`);
    this.graph.viewport.removeAttribute("transform");
    const scale = Math.min(PAPER.width / width, PAPER.height / height, 1.25);
    this.graph.svg.parentElement.style.setProperty("--printed-height", `${Math.ceil(height * scale) + 20}px`);
    this.panel.replaceChildren(...this.#reasons());
  }

  #end() {
    if (!this.restore) return;
    this.graph.svg.removeAttribute("viewBox");
    this.restore();
    this.restore = null;
  }

  /** Spell why the nodes are where they are that findings and a refusal name. */
  #reasons() {
    const { program } = this.graph;
    const refused = program.refused.size ? [{ title: "refused", nodes: [...program.refused] }] : [];
    const found = [...refused, ...program.raw.findings].filter(({ nodes }) => nodes.length);
    if (!found.length) return [];
    return [make("h2", {}, "Reasons of what matters"), ...found.flatMap(({ title, nodes }) => [
      make("h3", {}, `${title}: ${nodes.length > PRINTED_NODES ? `${PRINTED_NODES} of ` : ""}${plural(nodes.length, "node")}`),
      ...nodes.slice(0, PRINTED_NODES).flatMap((node) => [
        make("p", {}, make("b", {}, visible(program.name(node))), ` (${program.op(node)}) on ${program.deviceSign(program.device(node)).label}`),
        make("ol", {}, ...program.explanation(node).map((parts) => make("li", {}, ...this.details.spelled(parts)))),
      ]),
    ])];
  }
}
