"use strict";
// The page: reads what is embedded, joins the parts, listens to tabs, menus and keys.

const byId = (id) => document.getElementById(id);
const embedded = (id) => JSON.parse(byId(id).textContent);
const page = embedded("page-data");
const state = { program: null, view: "graph" };

function say(text) { byId("live").textContent = text; }

/** Show a node and say why it is where it is; `before` is said first. */
function go(node, before = "") {
  if (state.view !== "graph") openTab("graph");
  details.show(state.program, node);
  graph.reveal(node);
  graph.focus();
  saySelected(node, before);
}

function saySelected(node, before = "") {
  const { program } = state;
  const device = program.deviceSign(program.device(node)).label;
  say(`${before}${elide(visible(program.name(node)), 200)}, ${device}: the reasons are in the panel after the graph.`);
}

const details = new Details(byId("details"), { onClose: () => { graph.select(-1); graph.focus(); } });
const graph = new GraphView(byId("graph"), { onSelect: (node) => { details.show(state.program, node); saySelected(node); }, onStep: (by) => search.step(by), onSay: say });
const search = new Search(byId("search"), byId("found"), byId("steps"), { onPick: go, onFound: (nodes) => graph.mark(nodes), onSay: say });
const copies = new Copies(byId("panel-copies"), details);
const schedule = new ScheduleView(byId("panel-schedule"), details, { onGo: go });

const programs = new Map();

function programAt(number) {
  if (!programs.has(number)) programs.set(number, new Program(embedded(`program-${number}`), page));
  return programs.get(number);
}

function showProgram(number) {
  state.program = programAt(number);
  for (const section of document.querySelectorAll("#panel-summary .summary")) section.hidden = section.dataset.program !== String(number);
  byId("details").hidden = true;
  graph.selected = -1;
  const cost = byId("colouring").querySelector("[value=cost]");
  cost.disabled = !state.program.times;
  if (cost.disabled && byId("colouring").value === "cost") byId("colouring").value = "device";
  details.program = state.program;
  state.drawn = new Set();
  showGraph();
  search.use(state.program);
  drawTab();
}

function showGraph() {
  const tree = new Tree(state.program, byId("grouping").value);
  const colouring = new Colouring(page, state.program, byId("colouring").value);
  showLegend(colouring, tree);
  graph.show(state.program, tree, colouring, byId("control").checked);
}

function showLegend(colouring, tree) {
  const entries = colouring.legend(tree).map(([sign, count]) => make("span", {}, badge(sign, true), " ", sign.label, count === null ? "" : ` ${count.toLocaleString("en")}`));
  byId("legend").replaceChildren(...entries);
}

/** Fill the copies and the schedule when they are first looked at. */
function drawTab() {
  const view = { copies, schedule }[state.view];
  if (!view || state.drawn.has(state.view)) return;
  state.drawn.add(state.view);
  view.show(state.program);
}

function openTab(name) {
  state.view = name;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isChosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    const panel = byId(tab.getAttribute("aria-controls"));
    if (panel.id === "panel-summary") panel.classList.toggle("shown", isChosen);
    else panel.hidden = !isChosen;
  }
  if (state.program) drawTab();
  if (name === "graph" && graph.layout && graph.at.scale === 1 && !graph.at.x) graph.fit();
}

function listen() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const tab of tabs) tab.addEventListener("click", () => openTab(tab.id.slice("tab-".length)));
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const shown = tabs.filter((tab) => tab.offsetParent);
    const next = shown[(shown.indexOf(document.activeElement) + step + shown.length) % shown.length];
    next.focus();
    next.click();
  });
  byId("program").addEventListener("change", (event) => showProgram(Number(event.target.value)));
  byId("grouping").addEventListener("change", showGraph);
  byId("colouring").addEventListener("change", () => {
    const colouring = new Colouring(page, state.program, byId("colouring").value);
    graph.recolour(colouring);
    showLegend(colouring, graph.tree);
  });
  byId("control").addEventListener("change", (event) => graph.setControl(event.target.checked));
  byId("zoom-in").addEventListener("click", () => graph.zoom(ZOOM));
  byId("zoom-out").addEventListener("click", () => graph.zoom(1 / ZOOM));
  byId("zoom-fit").addEventListener("click", () => graph.fit());
  byId("collapse").addEventListener("click", () => { graph.reset(); say("All scopes reset."); });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the graph may be behind another tab
    openTab("graph");
    graph.focus();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-node]");
    if (!link) return;
    event.preventDefault();
    go(Number(link.dataset.node));
  });
  matchMedia("(max-width: 1100px)").addEventListener("change", (event) => {
    if (!event.matches && state.view === "summary") openTab("graph"); // the summary has a column of its own again
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea");
    const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
    if (event.key === "/" && !isTyping && !hasModifier) { event.preventDefault(); openTab("graph"); byId("search").focus(); }
    if (event.key === "Escape" && !byId("details").hidden) details.close();
  });
}

function start() {
  performance.mark("simplace-start");
  listen();
  openTab("graph");
  if (page.programs.length) showProgram(Number(byId("program").value));
  else say("No program was placed.");
  performance.mark("simplace-ready");
  document.documentElement.dataset.ready = "yes";
}

start();
