"use strict";
// The page: reads what is embedded, joins the parts, listens to tabs, menus and keys.

const byId = (id) => document.getElementById(id);
const embedded = (id) => JSON.parse(byId(id).textContent);
const page = embedded("page-data");
const state = { program: null, number: -1, view: "graph", drawn: new Set() };
const programs = new Map();
const AT_FIRST = /^(texts$|nodes\.(scope|leaf|op|device)$|edges\.|copies\.|overview\.)/; // long columns of the first screen

function say(text) { byId("live").textContent = text; }

/** Show a node and say why it is where it is; `before` is said first. */
function go(node, before = "") {
  if (state.view !== "graph") openTab("graph");
  doInSteps(goTo(node), () => { graph.focus(); saySelected(node, before); });
}

function* goTo(node) {
  if (state.program.isLarge) yield* parseColumns(state.program.raw, (path) => !path.startsWith("schedule."));
  details.show(state.program, node);
  if (state.program.isLarge) yield;
  yield* graph.reveal(node);
}

function saySelected(node, before = "") {
  const { program } = state;
  const device = program.deviceSign(program.device(node)).label;
  say(`${before}${elide(visible(program.name(node)), 200)}, ${device}: the reasons are in the panel after the graph.`);
}

/** Mark nodes in the graph, and step through them. */
function follow(nodes, title) {
  if (state.view !== "graph") openTab("graph");
  search.follow(nodes, title);
}

/** Follow the copies of one line: mark who sends and who reads them, list them in the panel. */
function followCopies(numbers) {
  const { copies } = state.program.raw;
  const title = `${plural(numbers.length, "copy")}, ${bytes(numbers.reduce((sum, copy) => sum + Math.max(0, copies.size[copy]), 0))}`;
  search.mark(numbers.flatMap((copy) => [copies.producer[copy], ...copies.consumers[copy]]), title);
  details.showCopies(state.program, numbers, title);
  say(`${title}: its ends are marked in the graph, n and p step through them.`);
}

const details = new Details(byId("details"), { onClose: () => { graph.select(-1); graph.focus(); } });
const graph = new GraphView(byId("graph"), new Minimap(byId("minimap"), byId("map")), {
  onSelect: (node) => { details.show(state.program, node); saySelected(node); },
  onCopies: followCopies,
  onCollective: ({ nodes, kind }) => search.mark(nodes, kind),
  onChange: () => { drawTrail(); address.keep(); },
  onSay: say,
});
const hands = new Hands(graph, { onStep: (by) => search.step(by) });
const search = new Search(byId("search"), byId("found"), byId("steps"), { onPick: go, onFound: (nodes) => { graph.mark(nodes); address.keep(false); }, onSay: say });
const copies = new Copies(byId("panel-copies"), details, { onFollow: follow });
const schedule = new ScheduleView(byId("panel-schedule"), details, { onGo: go });
const printing = new Printing(byId("printed"), { graph, details, showOverview });
const address = new Address({ read: readShown, show: showFields });

/** Read a program in steps: the columns that the first screen needs; the others are read when the browser is idle. */
function* readProgram(number) {
  if (programs.has(number)) return;
  const raw = embeddedColumns(`program-${number}`);
  yield* parseColumns(raw, (path) => AT_FIRST.test(path));
  programs.set(number, new Program(raw, page));
  if (programs.get(number).isLarge) yield;
}

/** Show a program, then `act`: a large one is read first, in steps. */
function showProgram(number, act = () => {}) {
  doInSteps(readProgram(number), () => {
    beginProgram(number);
    showGraph(() => doInSteps(search.use(state.program), () => { drawTab(); act(); }));
  });
}

function beginProgram(number) {
  state.number = number;
  state.program = programs.get(number);
  byId("program").value = String(number);
  for (const section of document.querySelectorAll("[data-program]")) section.hidden = section.dataset.program !== String(number);
  byId("details").hidden = true;
  graph.selected = -1;
  const cost = byId("colouring").querySelector("[value=cost]");
  cost.disabled = !state.program.hasTimes;
  if (cost.disabled && byId("colouring").value === "cost") byId("colouring").value = "device";
  details.program = state.program;
  state.drawn = new Set();
}

/** Show the graph as the menus say, then `act`: that of a large program is made in steps. */
function showGraph(act = () => {}) {
  const panel = byId("panel-graph");
  panel.inert = state.program.isLarge; // until there is a graph again
  doInSteps(drawGraph(), () => { panel.inert = false; act(); });
}

function* drawGraph() {
  const { program } = state;
  const tree = yield* Tree.of(program, byId("grouping").value);
  const mode = byId("colouring").value;
  const isKept = graph.tree === tree && graph.colouring.mode === mode;
  const colouring = isKept ? graph.colouring : new Colouring(page, program, mode);
  if (program.isLarge) yield;
  showLegend(colouring, tree);
  if (program.isLarge) yield;
  yield* graph.show(program, tree, colouring, byId("control").checked);
  if (program.isLarge) yield;
}

/** Show the overview for a while, laid out for paper of a size; return what shows again what was shown. */
function showOverview(paper) {
  const before = { grouping: byId("grouping").value, open: [...graph.open], root: graph.root, selected: graph.selected, at: graph.at };
  address.isShowing = true;
  graph.selected = -1;
  graph.paper = paper;
  choose("grouping", FIRST.group);
  doAtOnce(drawGraph());
  return () => {
    graph.paper = null;
    choose("grouping", before.grouping);
    doAtOnce(drawGraph());
    graph.selected = before.selected;
    doAtOnce(graph.restore(before.open, before.root));
    graph.moveBy(before.at.x - graph.at.x, before.at.y - graph.at.y);
    address.isShowing = false;
  };
}

function showLegend(colouring, tree) {
  const entries = colouring.legend(tree).map(([sign, count]) => make("span", {}, badge(sign, true), " ", sign.label, count === null ? "" : ` ${count.toLocaleString("en")}`));
  byId("legend").replaceChildren(...entries);
}

/** Say what the graph shows, and the path to the scope that is shown alone. */
function drawTrail() {
  const { tree, root } = graph;
  const step = (item, label) => (item === root
    ? make("b", { "aria-current": "true" }, label)
    : make("button", { type: "button", onclick: () => graph.enter(item) }, label));
  const name = elide(visible(page.programs[state.number]), 60);
  const steps = [0, ...tree.path(root)].map((item) => step(item, item ? elide(visible(tree.label[item]), 40) : name));
  const message = root ? "" : tree.hasPlaces ? state.program.raw.overview.message : "";
  const hidden = graph.shown.hidden ? ` ${plural(graph.shown.hidden, "line")} that longer paths imply ${graph.shown.hidden === 1 ? "is" : "are"} not drawn.` : "";
  byId("trail").replaceChildren(...(root ? steps.flatMap((each, i) => (i ? [" › ", each] : [each])) : [make("b", {}, visible(message))]), hidden && make("span", { class: "faint" }, hidden));
}

/** Fill the copies and the schedule when they are first looked at. */
function drawTab() {
  const view = { copies, schedule }[state.view];
  if (!view || state.drawn.has(state.view)) return;
  state.drawn.add(state.view);
  doInSteps(view.show(state.program));
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
  address.keep();
}

const FIRST = { view: "graph", group: "overview", colour: "device" }; // is not written into an address

/** List what is shown for the address; open scopes and nodes by what stays the same when the page is made anew. */
function readShown() {
  if (!state.program) return [];
  const { tree, root, open, selected } = graph;
  const chosen = { view: state.view, group: byId("grouping").value, colour: byId("colouring").value };
  const isMain = byId("program").querySelector("option[selected]")?.value === String(state.number);
  return [
    ["program", isMain ? "" : String(state.number + 1)],
    ...Object.entries(chosen).map(([key, value]) => [key, value === FIRST[key] ? "" : value]),
    ["control", byId("control").checked ? "1" : ""],
    ["search", search.followed ? "" : byId("search").value.trim()],
    ["open", graph.isAsAtFirst ? "" : [...open].sort((a, b) => a - b).map((item) => tree.address(item)).join(",")],
    ["inside", root ? tree.address(root) : ""],
    ["node", selected < 0 ? "" : state.program.name(selected)],
  ];
}

/** Show what an address names, `then` act. */
function showFields(fields, then) {
  const number = Number(fields.get("program") ?? NaN) - 1;
  const main = Number(byId("program").querySelector("option[selected]")?.value ?? 0);
  choose("grouping", fields.get("group") ?? FIRST.group);
  choose("colouring", fields.get("colour") ?? FIRST.colour);
  byId("control").checked = fields.get("control") === "1";
  showProgram(number in page.programs ? number : main, () => doInSteps(openScopes(fields), () => { showInside(fields); then(); }));
}

/** Open, in steps, the scopes that an address names, and bring its node to the middle. */
function* openScopes(fields) {
  const { tree } = graph;
  if (fields.has("open") || fields.has("inside")) {
    const open = fields.has("open") ? [] : [...graph.open];
    for (const path of fields.get("open")?.split(",") ?? []) open.push(yield* tree.at(path));
    yield* graph.restore(open, fields.has("inside") ? yield* tree.at(fields.get("inside")) : 0);
  }
  yield* search.seek(fields.get("search") ?? "");
  const name = fields.get("node");
  if (name !== undefined) yield* showNamed(name);
}

/** Show the rest of what an address names. */
function showInside(fields) {
  drawTrail();
  const view = fields.get("view") ?? FIRST.view;
  openTab(byId(`tab-${view}`) ? view : FIRST.view);
}

function* showNamed(name) {
  const node = state.program.find(name);
  if (node < 0) say(`The address names a node that is not in this program: ${visible(name)}`);
  else { details.show(state.program, node); yield* graph.reveal(node); }
}

function choose(id, value) {
  const menu = byId(id);
  menu.value = value;
  if (menu.value !== value) menu.selectedIndex = 0;
}

/** Choose light or dark by hand; the browser's own choice holds until then. */
function turnTheme() {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
  nameTheme();
  schedule.repaint();
}

/** Name the theme that a press on the button leads to. */
function nameTheme() {
  byId("theme").textContent = getComputedStyle(document.documentElement).colorScheme === "dark" ? "Light" : "Dark";
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
  byId("grouping").addEventListener("change", () => showGraph());
  byId("colouring").addEventListener("change", () => {
    const colouring = new Colouring(page, state.program, byId("colouring").value);
    doInSteps(graph.recolour(colouring), () => { showLegend(colouring, graph.tree); address.keep(); });
  });
  byId("control").addEventListener("change", (event) => doInSteps(graph.setControl(event.target.checked), () => address.keep()));
  byId("zoom-in").addEventListener("click", () => graph.zoom(ZOOM));
  byId("zoom-out").addEventListener("click", () => graph.zoom(1 / ZOOM));
  byId("zoom-fit").addEventListener("click", () => graph.fit());
  byId("collapse").addEventListener("click", () => { graph.reset(); say("All scopes reset."); });
  byId("theme").addEventListener("click", turnTheme);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the graph may be behind another tab
    openTab("graph");
    graph.focus();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-node], a[data-finding], a[data-tab]");
    if (!link) return;
    event.preventDefault();
    const { finding, tab, node } = link.dataset;
    if (finding !== undefined) follow(state.program.raw.findings[finding].nodes, state.program.raw.findings[finding].title);
    else if (tab) openTab(tab);
    else go(Number(node));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  matchMedia("(max-width: 1100px)").addEventListener("change", (event) => {
    if (!event.matches && state.view === "summary") openTab("graph"); // the summary has a column of its own again
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea");
    const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
    if (event.key === "/" && !isTyping && !hasModifier) { event.preventDefault(); openTab("graph"); byId("search").focus(); }
    if (event.key === "m" && !isTyping && !hasModifier) byId("map").click();
    if (event.key === "Escape" && !byId("details").hidden) details.close();
  });
}

function start() {
  performance.mark("simplace-start");
  listen();
  document.querySelectorAll("table").forEach(enhance);
  nameTheme();
  address.isShowing = true;
  openTab("graph");
  if (!page.programs.length) {
    say("No program was placed.");
    ready();
    return;
  }
  byId("panel-graph").inert = true; // until there is a graph
  showProgram(Number(byId("program").value), () => address.restore(ready));
}

function ready() {
  address.isShowing = false;
  performance.mark("simplace-ready");
  document.documentElement.dataset.ready = "yes";
  if (state.program) doWhenIdle(parseColumns(state.program.raw, () => true));
}

start();
