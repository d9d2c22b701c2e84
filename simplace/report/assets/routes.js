"use strict";
// Lines from one box to others, past all boxes between: the shortest way along a raster of upright and level lines.

const CLEAR = 7; // pixels between a line and the boxes that it passes
const BEND = 60; // pixels that a line takes more rather than bend once more
const MOST_POINTS = 30000; // of a raster; of more, lines run straight, and beneath boxes
const ROUNDING = 6; // pixels of a corner

/**
 * Lead lines from `start` to each of `ends`, points where lines leave and enter boxes upright: at the bottom of a box with
 * `way` 1, at its top with -1. Return the points of each line, null where no way is free. `blocks` are in the way.
 */
function routed(start, ends, blocks) {
  const raster = new Raster([start, ...ends].map(lifted), blocks);
  if (raster.size > MOST_POINTS) return ends.map(() => null);
  const before = raster.search(lifted(start), ends.map(lifted));
  return ends.map((end) => {
    const way = raster.follow(before, lifted(end));
    return way && withoutStops([start, ...way, end].map(({ x, y }) => ({ x, y })));
  });
}

/** Return the point a little off a box at which a line may turn. */
function lifted({ x, y, way }) { return { x, y: y + way * CLEAR }; }

/** Leave out points between two others on one straight line. */
function withoutStops(points) {
  return points.filter(({ x, y }, i) => {
    const [before, after] = [points[i - 1], points[i + 1]];
    return !before || !after || !((before.x === x && x === after.x) || (before.y === y && y === after.y));
  });
}

/** Run straight lines with round corners through points. */
function rounded(points) {
  const corners = points.slice(1, -1).flatMap((corner, i) => {
    const [before, after] = [points[i], points[i + 2]];
    const [enter, leave] = [before, after].map((other) => towards(corner, other));
    return [`L${enter.x},${enter.y}`, `Q${corner.x},${corner.y} ${leave.x},${leave.y}`];
  });
  return [`M${points[0].x},${points[0].y}`, ...corners, `L${points.at(-1).x},${points.at(-1).y}`].join(" ");
}

function towards({ x, y }, other) {
  const length = Math.hypot(other.x - x, other.y - y) || 1;
  const share = Math.min(ROUNDING, length / 2) / length;
  return { x: x + (other.x - x) * share, y: y + (other.y - y) * share };
}

const [LEVEL, UPRIGHT] = [0, 1];

/** The points at which lines may turn, and which pieces between two of them are free of boxes. */
class Raster {
  constructor(points, blocks) {
    const sorted = (values) => [...new Set(values)].sort((one, other) => one - other);
    this.xs = sorted([...points.map(({ x }) => x), ...blocks.flatMap(({ x, width }) => [x - CLEAR, x + width + CLEAR])]);
    this.ys = sorted([...points.map(({ y }) => y), ...blocks.flatMap(({ y, height }) => [y - CLEAR, y + height + CLEAR])]);
    [this.xAt, this.yAt] = [this.xs, this.ys].map((values) => new Map(values.map((value, i) => [value, i])));
    this.size = this.xs.length * this.ys.length;
    if (this.size > MOST_POINTS) return;
    this.taken = [new Uint8Array(this.size), new Uint8Array(this.size)]; // the piece to the right of a point, or below it
    for (const block of blocks) this.#block(block);
  }

  #block({ x, y, width, height }) {
    const [left, right] = [firstAbove(this.xs, x - 2), firstAbove(this.xs, x + width + 2 - 1e-6)];
    const [top, bottom] = [firstAbove(this.ys, y - 2), firstAbove(this.ys, y + height + 2 - 1e-6)];
    for (let row = top; row < bottom; row += 1) {
      for (let column = Math.max(0, left - 1); column < right; column += 1) this.taken[LEVEL][row * this.xs.length + column] = 1;
    }
    for (let row = Math.max(0, top - 1); row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) this.taken[UPRIGHT][row * this.xs.length + column] = 1;
    }
  }

  #number({ x, y }) { return this.yAt.get(y) * this.xs.length + this.xAt.get(x); }

  /**
   * Return, for each point and direction of arriving (two numbers a point), the state before it; -1 where no way is. The
   * search ends when the best ways to all of `ends` are known.
   */
  search(start, ends) {
    const wanted = new Set(ends.map((end) => this.#number(end)));
    const { xs, ys, taken } = this;
    const columns = xs.length;
    const [lengths, before] = [new Float64Array(2 * this.size).fill(Infinity), new Int32Array(2 * this.size).fill(-1)];
    const first = 2 * this.#number(start) + UPRIGHT;
    const waiting = new Heap(([one], [other]) => one - other);
    lengths[first] = 0;
    waiting.push([0, first]);
    const reach = (state, point, direction, way) => {
      const [next, length] = [2 * point + direction, lengths[state] + way + (state % 2 === direction ? 0 : BEND)];
      if (length >= lengths[next]) return;
      lengths[next] = length;
      before[next] = state;
      waiting.push([length, next]);
    };
    for (let least = waiting.pop(); least; least = waiting.pop()) {
      const [length, state, isTurned] = least;
      if (length > lengths[state] && !isTurned) continue;
      const point = state >> 1;
      if (wanted.has(point)) {
        if (state % 2 === UPRIGHT || isTurned) wanted.delete(point);
        else waiting.push([length + BEND, state, true]); // it still has to turn there
        if (!wanted.size) break;
      }
      if (isTurned) continue;
      const [row, column] = [Math.floor(point / columns), point % columns];
      if (column + 1 < columns && !taken[LEVEL][point]) reach(state, point + 1, LEVEL, xs[column + 1] - xs[column]);
      if (column && !taken[LEVEL][point - 1]) reach(state, point - 1, LEVEL, xs[column] - xs[column - 1]);
      if (row + 1 < ys.length && !taken[UPRIGHT][point]) reach(state, point + columns, UPRIGHT, ys[row + 1] - ys[row]);
      if (row && !taken[UPRIGHT][point - columns]) reach(state, point - columns, UPRIGHT, ys[row] - ys[row - 1]);
    }
    this.lengths = lengths;
    return before;
  }

  /** Return the points of the way that `search` found to a point, null where none is. */
  follow(before, end) {
    const point = this.#number(end);
    const [level, upright] = [this.lengths[2 * point] + BEND, this.lengths[2 * point + 1]];
    if (Math.min(level, upright) === Infinity) return null;
    const found = [];
    for (let state = 2 * point + (upright <= level ? UPRIGHT : LEVEL); state >= 0; state = before[state]) {
      found.push({ x: this.xs[(state >> 1) % this.xs.length], y: this.ys[Math.floor((state >> 1) / this.xs.length)] });
    }
    return found.reverse();
  }
}

/** Return the place of the first of sorted values that is above a limit. */
function firstAbove(values, limit) {
  let [from, to] = [0, values.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] > limit) to = middle;
    else from = middle + 1;
  }
  return from;
}
