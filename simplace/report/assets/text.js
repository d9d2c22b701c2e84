"use strict";
// Spell texts, sizes and times for people, and build elements out of texts that are never read as markup.

const UNSHOWABLE = "\ufffd";
// Control characters, lone surrogates, and marks that reorder the text around them.
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufffe\\uffff]" +
    "|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]", "g");

/** Replace each character that a page would not show as itself. */
function visible(text) {
  return text.replace(/\r\n?|\n/g, "↵").replace(/\t/g, "⇥").replace(HIDDEN, UNSHOWABLE);
}

/** Shorten a text to `limit` letters with an ellipsis in its middle: the end of a name tells most. */
function elide(text, limit) {
  if (text.length <= limit) return text;
  const kept = Math.max(limit - 1, 0);
  const tail = Math.ceil(kept / 2);
  return `${text.slice(0, kept - tail)}…${text.slice(text.length - tail)}`.replace(/… ?…/, "…");
}

const JOINTS = /(?<=[_.])(?=[a-z])|(?<=[a-z0-9]:)(?=\d)|(?<=[a-z])(?=[A-Z])/; // markup.py has it, too

/** Return a name in parts between which a line may break: its scopes, and the words of one that is wider than a line. */
function breakable(name) {
  const apart = (parts) => parts.flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
  return apart(name.split(/(?<=\/)(?=\w)/).map((scope) => {
    const parts = scope.split(JOINTS);
    return parts.length > 1 ? make("span", { class: "part" }, ...apart(parts)) : scope;
  }));
}

/** Count things; "other" is for the rest of some. */
function plural(count, noun) {
  if (count === 1) return `1 ${noun}`;
  const ending = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : /(x|ch)$/.test(noun) ? `${noun}es` : `${noun}s`;
  return `${count.toLocaleString("en")} ${ending}`;
}

/** Spell a number of bytes; a negative one is unknown. */
function bytes(count) {
  if (count < 0) return "unknown size";
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${count < 100 && unit ? Number(count.toPrecision(3)) : Math.round(count)} ${units[unit]}`;
}

/** Spell a time in nanoseconds. */
function duration(nanoseconds) {
  for (const [unit, factor] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(nanoseconds) >= factor) return `${Number((nanoseconds / factor).toPrecision(3))} ${unit}`;
  }
  return nanoseconds ? `${Math.round(nanoseconds)} ns` : "0";
}

/** Spell how far off a time is in the mean, "" where it is no prediction. */
function plusMinus(error) {
  return error ? ` ± ${Math.max(1, Math.round(100 * error))}%` : "";
}

function build(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/** Make an HTML element; children are elements or texts. */
function make(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
function draw(tag, attributes = {}, ...children) {
  return build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Make the letters of a device or a reason in its colour; `isNamed` where its words stand beside it. */
function badge(sign, isNamed = false) {
  const spoken = isNamed ? { "aria-hidden": "true" } : { role: "img", "aria-label": sign.label };
  return make("span", { class: `badge ${sign.style}`, title: sign.label, ...spoken }, sign.letters);
}

const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();
let family;

/** Measure a text in pixels. */
function textWidth(text, size = 12, weight = 400) {
  const key = `${size} ${weight} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    family ??= getComputedStyle(document.documentElement).fontFamily; // once: it makes the browser compute styles
    ruler.font = `${weight} ${size}px ${family}`;
    width = ruler.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/** Cut the end of a text off until it fits a width in pixels. */
function fitStart(text, width) {
  if (textWidth(text) <= width) return text;
  let shown = text.slice(0, 80);
  for (let wide = textWidth(`${shown}…`); shown && wide > width; wide = textWidth(`${shown}…`)) {
    shown = shown.slice(0, Math.min(shown.length - 1, Math.floor((shown.length * width) / wide)));
  }
  return `${shown}…`;
}

/** Shorten a text until it fits a width in pixels. */
function fit(text, width, size = 12) {
  let shown = elide(text, 60);
  while (shown.length > 3 && textWidth(shown, size) > width) {
    shown = elide(text, Math.min(shown.length - 1, Math.floor((shown.length * width) / textWidth(shown, size)) + 1));
  }
  return shown;
}
