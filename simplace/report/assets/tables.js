"use strict";
// Tables that sort by a click on a heading, grow by a button, and are copied as text.

const ROWS = 50; // that a table shows, and a button adds

class SortedTable {
  /**
   * Make a table of values. A column has a `title`, the `cell(value)` that is shown (elements and texts), the `key(value)`
   * that sorts it, and `text(value)` where its key is not what a copy of the table should have.
   */
  constructor(columns, values) {
    Object.assign(this, { columns, values: [...values], sorted: -1, shown: 0 });
    this.body = make("tbody");
    this.heads = columns.map(({ title, align }, i) => make("th", { scope: "col", class: align ?? "", "aria-sort": "none" },
      make("button", { type: "button", class: "sort", onclick: () => this.sort(i) }, title)));
    this.more = make("button", { type: "button", onclick: () => this.#grow() });
    this.element = make("div", { class: "table" },
      make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...this.heads)), this.body)),
      make("p", { class: "buttons" }, this.more, copyButton(() => this.text())));
    this.#grow();
  }

  /** Sort by a column; the same column again turns the order round. */
  sort(column) {
    const isDown = this.sorted === column && !this.isDown;
    Object.assign(this, { sorted: column, isDown, shown: 0 });
    this.values.sort((one, other) => compareKeys(this.columns[column].key(one), this.columns[column].key(other)) * (isDown ? -1 : 1));
    this.heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : isDown ? "descending" : "ascending"));
    this.body.replaceChildren();
    this.#grow();
  }

  /** Return all of the table as text, tabs between cells. */
  text() {
    const rows = this.values.map((value) => this.columns.map(({ key, text }) => (text ?? key)(value)));
    return asText([this.columns.map(({ title }) => title), ...rows]);
  }

  #grow() {
    const rows = this.values.slice(this.shown, this.shown + ROWS);
    this.body.append(...rows.map((value) => make("tr", {}, ...this.columns.map(({ cell, align }) => make("td", { class: align ?? "" }, ...[cell(value)].flat())))));
    this.shown += rows.length;
    this.more.textContent = `show more (${(this.values.length - this.shown).toLocaleString("en")} left)`;
    this.more.hidden = this.shown >= this.values.length;
  }
}

/** Let a table that the page holds as HTML be sorted and copied. */
function enhance(table) {
  const heads = [...table.querySelectorAll("thead th")];
  const body = table.tBodies[0];
  if (!body || body.rows.length < 2) return;
  heads.forEach((head, i) => {
    const button = make("button", { type: "button", class: "sort" }, head.textContent);
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const isDown = head.getAttribute("aria-sort") === "ascending";
      for (const each of heads) each.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const key = (row) => amount(row.cells[i].textContent);
      body.append(...[...body.rows].sort((one, other) => compareKeys(key(one), key(other)) * (isDown ? -1 : 1)));
    });
  });
  const rows = () => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  table.parentElement.after(make("p", { class: "buttons" }, copyButton(() => asText(rows()))));
}

const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, "%": 1 };

/** Return the number that a cell begins with, in bytes or seconds where it has a unit; else its text. */
function amount(text) {
  const found = /^\s*([\d,]*\.?\d+)\s*([A-Za-zµ%]*)/.exec(text);
  return found ? Number(found[1].replace(/,/g, "")) * (UNITS[found[2]] ?? 1) : text.trim();
}

/** Sort numbers before texts, numbers by their amount, texts by their letters and the numbers in them. */
function compareKeys(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === typeof other) return one.localeCompare(other, "en", { numeric: true });
  return typeof one === "number" ? -1 : 1;
}

function asText(rows) {
  return rows.map((row) => row.map((cell) => visible(String(cell))).join("\t")).join("\n");
}

function copyButton(read) {
  const button = make("button", { type: "button", class: "copy-text", title: "Copy the table as text, tabs between cells" }, "copy as text");
  button.addEventListener("click", () => {
    copyText(read()).then(
      () => { button.textContent = "copied"; say("The table is copied as text."); },
      (error) => { button.textContent = "not copied"; say(`The browser does not let this page copy: ${error.message}`); });
    setTimeout(() => { button.textContent = "copy as text"; }, 2000);
  });
  return button;
}

/** Give a text to the clipboard: by an older way where the browser allows no other. */
async function copyText(text) {
  if (navigator.clipboard) {
    try { await navigator.clipboard.writeText(text); return; } catch (error) { if (error.name !== "NotAllowedError") throw error; }
  }
  const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  if (!isDone) throw new Error("it has no access to the clipboard");
}
