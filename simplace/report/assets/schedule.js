"use strict";
// The simulated schedule as a Gantt chart: one track per thread, stream and link; time from left to right.

const TRACK = 22;
const AXIS = 24;
const NAMES = 190; // pixels for the tracks' names at most
const LONGEST = 30; // events of the critical path that are listed
const NAMED = 46; // pixels from which on a bar has its name
const [BADGE, NEAR] = [22, 4]; // pixels that a device's letters take, and between bars that share them
const NOTES = 4; // that are shown before the rest folds away

class ScheduleView {
  constructor(panel, details, { onGo }) {
    Object.assign(this, { panel, details, onGo });
    new ResizeObserver(() => this.canvas?.isConnected && this.#paint()).observe(panel);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.canvas?.isConnected && this.#paint());
  }

  /** Paint the chart anew in the colours of the page. */
  repaint() { if (this.canvas?.isConnected) this.#paint(); }

  /** Show the schedule of a program, that of a large one in steps. */
  *show(program) {
    this.program = program;
    this.canvas = null;
    this.panel.replaceChildren();
    if (program.isLarge) yield* parseColumns(program.raw, (path) => path.startsWith("schedule."));
    const { schedule } = program;
    if (schedule.missing) {
      this.panel.replaceChildren(make("h2", {}, "Schedule"), make("p", { class: "note" }, visible(schedule.missing)));
      return;
    }
    this.spans = yield* Spans.of(schedule);
    const longest = yield* this.spans.longestCritical(LONGEST);
    const { kind, members } = program.raw.collectives;
    this.collectives = new Map(members.flatMap((nodes, i) => nodes.map((node) => [node, program.text(kind[i])])));
    this.view = { from: 0, to: Math.max(1, schedule.makespan) };
    this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": `Gantt chart. ${schedule.headline}. Arrow keys move, + and - zoom, 0 shows all.` });
    this.tip = make("div", { class: "tip", hidden: true });
    const button = (text, label, act) => make("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const lists = [...this.#notes(), ...this.#busy(), ...this.#layers()];
    if (program.isLarge) yield;
    this.panel.replaceChildren(
      make("h2", {}, "Simulated schedule"),
      ...schedule.headline.split("\n").map((line) => make("p", {}, visible(line))),
      make("p", {}, make("b", {}, visible(schedule.verdict))),
      ...(schedule.sent ? [make("p", {}, visible(schedule.sent))] : []),
      make("div", { class: "schedule-head faint" }, visible(schedule.settings),
        button("+", "Zoom in", () => this.#zoom(0.6)), button("−", "Zoom out", () => this.#zoom(1 / 0.6)), button("All", "All: show the whole step", () => this.#reset())),
      make("div", { class: "chart" }, this.canvas, this.tip),
      make("p", { class: "faint" }, "Outlined bars are on the critical path; hatched bars are copies; a grey bar over several tracks is a collective. simplace schedule simulates other threads, devices and costs."),
      ...lists,
      make("h3", {}, "Longest events of the critical path"), this.#longest(longest));
    this.#listen();
    if (program.isLarge) yield;
    this.#paint();
  }

  /** Show the first notes; the rest fold away, and are made when they are unfolded. */
  #notes() {
    const { notes } = this.program.schedule;
    const [lines, rest] = [notes.slice(0, NOTES), notes.slice(NOTES)];
    const paragraph = (line) => make("p", { class: "note" }, visible(line));
    if (!rest.length) return lines.map(paragraph);
    const folded = make("details", {}, make("summary", {}, `and ${plural(rest.length, "more note")}`));
    folded.addEventListener("toggle", () => folded.append(...rest.map(paragraph)), { once: true });
    return [...lines.map(paragraph), folded];
  }

  /** List where the time of each device goes. */
  #busy() {
    const { heads, rows } = this.program.schedule.busy;
    const columns = heads.map((title, i) => ({ title, align: i ? "right" : "", cell: (row) => visible(row[i]), key: (row) => amount(row[i]), text: (row) => row[i] }));
    return [make("h3", {}, "Where the time of each device goes"), new SortedTable(columns, rows).element];
  }

  /** List the critical path by layer; a click shows in the chart where the layer is on the path. */
  #layers() {
    const { name, time, from, to } = this.program.schedule.layers;
    if (!name.length) return [];
    const whole = Math.max(1, time.reduce((sum, one) => sum + one, 0));
    const share = (layer) => `${Math.round((100 * time[layer]) / whole)}%`;
    const show = (layer) => this.#showLayer(name[layer], from[layer], to[layer]);
    const table = new SortedTable([
      { title: "layer", key: (layer) => name[layer], cell: (layer) => make("button", { type: "button", class: "link", title: "Show it in the chart", onclick: () => show(layer) }, visible(name[layer])) },
      { title: `time${plusMinus(this.program.schedule.uncertainty)}`, align: "right", key: (layer) => time[layer], text: (layer) => duration(time[layer]), cell: (layer) => [bar100(time[layer] / whole), duration(time[layer])] },
      { title: "of the path", align: "right", key: (layer) => time[layer], text: share, cell: share },
    ], name.keys());
    return [make("h3", {}, "The critical path by layer"), table.element];
  }

  #showLayer(name, from, to) {
    const margin = Math.max(1, (to - from) * 0.05);
    this.#look(from - margin, to - from + 2 * margin);
    this.canvas.parentElement.scrollIntoView({ block: "nearest" });
    say(`The chart shows ${visible(name)}: ${duration(from)} to ${duration(to)}${plusMinus(this.program.schedule.uncertainty)}.`);
  }

  /** List the longest critical spans: the chart in words. */
  #longest(spans) {
    const isBound = spans.some((span) => this.#bound(span)); // else no kernel of a GPU is among them
    const rows = spans.map((span) => make("tr", {},
      make("td", { class: "right" }, duration(span.start)), make("td", { class: "right" }, spelled(span)),
      make("td", {}, span.source.source), ...(isBound ? [make("td", {}, this.#bound(span))] : []),
      make("td", {}, this.program.schedule.tracks[span.track].name),
      make("td", {}, span.node >= 0 ? this.details.spelled([{ node: span.node, text: this.#name(span) }])[0] : visible(this.#name(span)))));
    const heads = [`start${plusMinus(this.program.schedule.uncertainty)}`, "duration", "source", ...(isBound ? ["bound"] : []), "track", "node"].map((title, i) => make("th", { scope: "col", class: i < 2 ? "right" : "" }, title));
    return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
  }

  /** Say what bounds a kernel on a GPU, "" for all else. */
  #bound(span) { return span.kind === "kernel" && span.node >= 0 ? this.program.bound(span.node) : ""; }

  #name(span) {
    const { copies } = this.program.raw;
    if (span.copy >= 0) return `copy of ${this.program.name(copies.producer[span.copy])}`;
    const name = span.node >= 0 ? this.program.name(span.node) : "added by partitioning";
    return span.kind === "collective" && this.collectives.has(span.node) ? `${this.collectives.get(span.node)} of ${name}` : name;
  }

  #device(span) {
    if (span.copy >= 0) return this.program.raw.copies.target[span.copy];
    return span.node >= 0 ? this.program.device(span.node) : -1;
  }

  #paint() {
    const { tracks } = this.program.schedule;
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    this.names = Math.min(NAMES, width * 0.3);
    const height = tracks.length * TRACK + AXIS;
    const ratio = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    this.styles = new Map();
    const css = getComputedStyle(document.documentElement);
    this.ink = css.getPropertyValue("--ink");
    this.paper = css.getPropertyValue("--paper");
    this.rule = css.getPropertyValue("--rule");
    this.edge = css.getPropertyValue("--edge");
    pen.font = `11px ${css.fontFamily}`;
    pen.textBaseline = "middle";
    this.#axis(pen, width, height);
    tracks.forEach((track, i) => this.#trackName(pen, track, i, width));
    this.#bars(pen, width);
  }

  #x(time, width) {
    return this.names + ((time - this.view.from) / (this.view.to - this.view.from)) * (width - this.names - 8);
  }

  #axis(pen, width, height) {
    const step = niceStep((this.view.to - this.view.from) / Math.min(6, Math.max(1, (width - this.names) / 90)));
    pen.fillStyle = this.ink;
    for (let time = Math.ceil(this.view.from / step) * step; time <= this.view.to; time += step) {
      const x = this.#x(time, width);
      pen.strokeStyle = this.rule;
      pen.beginPath(); pen.moveTo(x, AXIS - 4); pen.lineTo(x, height); pen.stroke();
      pen.fillText(duration(time), Math.min(x, width - 50), AXIS / 2);
    }
  }

  #trackName(pen, track, i, width) {
    const y = AXIS + i * TRACK;
    pen.strokeStyle = this.rule;
    pen.beginPath(); pen.moveTo(0, y); pen.lineTo(width, y); pen.stroke();
    pen.fillStyle = this.ink;
    pen.fillText(fit(visible(track.name), this.names - 16, 11), 8, y + TRACK / 2);
  }

  #bars(pen, width) {
    pen.save();
    pen.beginPath(); pen.rect(this.names, 0, width - this.names, 1e6); pen.clip();
    this.program.schedule.tracks.forEach((_, track) => this.#trackBars(pen, track, width));
    pen.restore();
  }

  #trackBars(pen, track, width) {
    const { spans, view } = this;
    const { critical } = this.program.schedule;
    const drawnTo = [-1, -1]; // what is critical is not hidden by what is not
    const shown = [];
    for (let at = spans.firstAfter(track, view.from); at < spans.firsts[track + 1] && spans.start[at] <= view.to; at += 1) {
      if (spans.end(at) < view.from) continue;
      const [left, right] = [this.#x(spans.start[at], width), this.#x(spans.end(at), width)];
      if (right < drawnTo[critical[at]] + 0.5) continue;
      drawnTo[critical[at]] = right;
      shown.push({ span: spans.at(at), x: left, width: Math.max(right - left, 0.7) });
    }
    const isShared = new Set(shown.map(({ span }) => this.#device(span))).size > 1;
    for (const { span, x, width: wide } of shown) this.#bar(pen, span, x, wide, isShared);
    if (isShared) this.#badges(pen, shown);
  }

  /** Write the letters of a device once over bars in a row that have no text, on a track with bars of several devices. */
  #badges(pen, shown) {
    const runs = [];
    for (const { span, x, width } of shown) {
      const [device, run] = [this.#device(span), runs.at(-1)];
      if (run?.device === device && x - run.right < NEAR) Object.assign(run, { right: x + width, isNamed: run.isNamed || width >= NAMED });
      else runs.push({ device, left: x, right: x + width, isNamed: width >= NAMED, track: span.track });
    }
    for (const { device, left, right, isNamed, track } of runs) {
      const { letters } = this.program.deviceSign(device);
      if (isNamed || !letters || right - left < BADGE) continue;
      const [x, y] = [(left + right) / 2, AXIS + track * TRACK + 3];
      pen.fillStyle = this.paper;
      pen.fillRect(x - BADGE / 2 + 1, y + 1, BADGE - 2, TRACK - 8);
      pen.fillStyle = this.ink;
      pen.textAlign = "center";
      pen.fillText(letters, x, y + (TRACK - 6) / 2 + 1);
      pen.textAlign = "start";
    }
  }

  #bar(pen, span, x, width, isShared) {
    const isCollective = span.kind === "collective"; // its bars on neighbouring tracks touch: they are one transfer
    const [y, height] = isCollective ? [AXIS + span.track * TRACK, TRACK] : [AXIS + span.track * TRACK + 3, TRACK - 6];
    const style = isCollective ? { fill: this.edge, line: this.edge } : this.#style(this.#device(span));
    pen.fillStyle = style.fill;
    pen.fillRect(x, y, width, height);
    if (width < 3) return;
    if (span.kind === "copy") hatch(pen, x, y, width, height, style.line);
    pen.strokeStyle = span.critical ? this.ink : style.line;
    pen.lineWidth = span.critical ? 1.8 : 0.6;
    pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    pen.lineWidth = 1;
    if (width < NAMED) return;
    pen.fillStyle = isCollective ? this.ink : "#14171c";
    const [name, { letters }] = [this.#name(span), this.program.deviceSign(this.#device(span))];
    const own = visible(name.slice(name.lastIndexOf("/") + 1) || name);
    pen.fillText(fit(isShared && letters ? `${letters} ${own}` : own, width - 8, 11), x + 4, y + height / 2 + 1);
  }

  #style(device) {
    if (!this.styles.has(device)) {
      const probe = make("span", { class: this.program.deviceSign(device).style });
      this.panel.append(probe);
      const css = getComputedStyle(probe);
      this.styles.set(device, { fill: css.getPropertyValue("--fill") || "#c9ced6", line: css.getPropertyValue("--line") || "#7b828b" });
      probe.remove();
    }
    return this.styles.get(device);
  }

  #zoom(factor, share = 0.5) {
    const length = this.view.to - this.view.from;
    const middle = this.view.from + length * share;
    this.#look(middle - length * factor * share, length * factor);
  }

  #look(from, length) {
    const whole = Math.max(1, this.program.schedule.makespan);
    const kept = Math.min(Math.max(length, 50), whole);
    const start = Math.min(Math.max(0, from), whole - kept);
    this.view = { from: start, to: start + kept };
    this.#soon();
  }

  #reset() { this.#look(0, Infinity); }

  #soon() {
    this.waiting ??= requestAnimationFrame(() => { this.waiting = null; if (this.canvas?.isConnected) this.#paint(); });
  }

  #listen() {
    const { canvas } = this;
    const share = (event) => Math.min(Math.max((event.offsetX - this.names) / (canvas.clientWidth - this.names - 8), 0), 1);
    let pressed = null;
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX) && event.offsetX < this.names) return;
      event.preventDefault();
      this.#zoom(Math.exp((event.deltaY || event.deltaX) * 0.0015), share(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => { pressed = { x: event.offsetX, from: this.view.from, moved: false }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (!pressed) { this.#hover(event); return; }
      pressed.moved ||= Math.abs(event.offsetX - pressed.x) > 3;
      const length = this.view.to - this.view.from;
      this.#look(pressed.from - ((event.offsetX - pressed.x) / (canvas.clientWidth - this.names)) * length, length);
    });
    canvas.addEventListener("pointerup", (event) => {
      const span = this.#spanAt(event);
      if (!pressed?.moved && span && span.node >= 0) this.onGo(span.node);
      pressed = null;
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("keydown", (event) => {
      const length = this.view.to - this.view.from;
      const act = {
        ArrowLeft: () => this.#look(this.view.from - length / 5, length), ArrowRight: () => this.#look(this.view.from + length / 5, length),
        "+": () => this.#zoom(0.6), "=": () => this.#zoom(0.6), "-": () => this.#zoom(1 / 0.6), 0: () => this.#reset(),
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  }

  #spanAt(event) {
    const track = Math.floor((event.offsetY - AXIS) / TRACK);
    const width = this.canvas.clientWidth;
    const time = this.view.from + ((event.offsetX - this.names) / (width - this.names - 8)) * (this.view.to - this.view.from);
    const slack = (this.view.to - this.view.from) / width;
    return track < 0 || track >= this.program.schedule.tracks.length ? null : this.spans.find(track, time, slack);
  }

  #hover(event) {
    const span = this.#spanAt(event);
    this.tip.hidden = !span;
    if (!span) return;
    const off = plusMinus(this.program.schedule.uncertainty);
    const waited = span.waited ? `; waited ${duration(span.waited)}${off} for a ${span.why}` : "";
    const shared = span.sharing ? `; ${span.sharing}` : "";
    const line = span.node >= 0 ? this.program.column("at", span.node) : "";
    const bound = this.#bound(span);
    this.tip.textContent = visible(`${this.#name(span)}: ${span.kind}, ${spelled(span)}${span.source.error ? ` (${span.source.source})` : ""}${bound ? `, ${bound},` : ""} from ${duration(span.start)}${off}${shared}${waited}${line ? `; ${line}` : ""}`);
    const left = Math.min(event.offsetX + 12, this.canvas.clientWidth - this.tip.offsetWidth - 8);
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${Math.max(0, Math.min(event.offsetY + 14, this.canvas.clientHeight - this.tip.offsetHeight - 4))}px`;
  }
}

/** Spell the length of a span with its uncertainty. */
function spelled(span) {
  return duration(span.duration) + plusMinus(span.source.error);
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function hatch(pen, x, y, width, height, colour) {
  pen.save();
  pen.beginPath(); pen.rect(x, y, width, height); pen.clip();
  pen.strokeStyle = colour;
  pen.beginPath();
  for (let at = Math.floor(x / 6) * 6 - height; at < x + Math.min(width, 4000); at += 6) { pen.moveTo(at, y + height); pen.lineTo(at + height, y); }
  pen.stroke();
  pen.restore();
}
