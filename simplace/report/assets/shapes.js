"use strict";
// The shapes of a graph: lines, bars, labels, arrows.

function arrow(id) {
  return draw("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" },
    draw("path", { d: "M0,0.5 L8,4 L0,7.5 Z" }));
}

const BAR_SIDES = 16; // left and right of a bar
const BAR_LETTERS = 4; // around letters in a bar

/** Return how wide a box is to be for the letters of all signs to be seen in its bar, 0 where it has none. */
function barWidth(signs) {
  if (signs.length < 2) return 0;
  const total = signs.reduce((sum, [, count]) => sum + count, 0);
  return BAR_SIDES + 1 + total * Math.max(...signs.map(([sign, count]) => (textWidth(sign.letters, 12, 600) + BAR_LETTERS) / count));
}

/** Show how many nodes of a scope have each sign: widths are shares, letters where there is room. */
function bar(signs, width, y) {
  const total = signs.reduce((sum, [, count]) => sum + count, 0);
  let x = 8;
  return signs.flatMap(([sign, count]) => {
    const part = (width * count) / total;
    const rect = draw("rect", { class: `bar ${sign.style}`, x, y, width: Math.max(part, 1), height: 13 });
    const letters = part > textWidth(sign.letters, 12, 600) + BAR_LETTERS ? [draw("text", { class: "letters", x: x + part / 2, y: y + 10 }, sign.letters)] : [];
    x += part;
    return [rect, ...letters];
  });
}

function edgeText(edge, left, top) {
  const lines = edgeLines(edge);
  if (!lines.length || !edge.labelAt) return [];
  const [x, y, width] = [edge.labelAt.x + left, edge.labelAt.y + top, edgeTextWidth(edge) + 8];
  const height = 14 * lines.length;
  return [
    draw("rect", { class: "edge-paper", x: x - width / 2, y: y - height / 2, width, height, rx: 3 }),
    ...lines.map((line, i) => draw("text", { class: "edge-label", x, y: y - height / 2 + 11 + 14 * i }, line)),
  ];
}

/** Run a smooth line through points, upright at each of them. */
function curve(points) {
  const bends = points.slice(1).map(({ x, y }, i) => {
    const middle = (points[i].y + y) / 2;
    return `C${points[i].x},${middle} ${x},${middle} ${x},${y}`;
  });
  return `M${points[0].x},${points[0].y} ${bends.join(" ")}`;
}

/** Run straight lines through points. */
function polyline(points) { return `M${points.map(({ x, y }) => `${x},${y}`).join(" L")}`; }

/** Choose how wide a line is: by the bytes that it copies, else by the edges that it stands for. */
function lineWidth(edge) {
  const width = edge.copies.size ? 1.5 + Math.log2(Math.max(edge.size, 1)) * 0.15 : 1 + Math.log2(edge.count) * 0.5;
  return Math.min(width, 6).toFixed(1);
}

/** Return where lines leave a box, at its bottom with `way` 1, or enter it, at its top with -1. */
function dockOf(place, way) { return { x: place.x + place.width / 2, y: way > 0 ? place.y + place.height : place.y, way }; }

/** Run a line from the bottom of one box to the top of another. */
function link(from, to) {
  const [x, y] = [from.x + from.width / 2, from.y + from.height];
  const [tx, ty] = [to.x + to.width / 2, to.y];
  const bend = Math.max(30, Math.abs(ty - y) / 2);
  return `M${x},${y} C${x},${y + bend} ${tx},${ty - bend} ${tx},${ty}`;
}
