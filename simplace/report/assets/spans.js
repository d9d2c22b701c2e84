"use strict";
// The events of a simulated schedule as columns, sorted by track and start; one of them as a record where somebody looks.

class Spans {
  /** Read the events of a schedule, in steps. */
  static* of(schedule) {
    const spans = new Spans(schedule);
    yield* spans.#readTracks();
    return spans;
  }

  constructor(schedule) {
    this.schedule = schedule;
    this.count = schedule.gap.length;
    this.firsts = [0]; // track i has the spans from firsts[i] up to firsts[i + 1]
    this.start = new Float64Array(this.count);
    this.reach = new Float64Array(this.count); // where the last of those of its track so far ends
  }

  *#readTracks() {
    const { counts, gap, duration } = this.schedule;
    for (const count of counts) {
      let [before, reach] = [0, 0];
      const first = this.firsts.at(-1);
      yield* lookAtEach(count, (i) => {
        const at = first + i;
        this.start[at] = before + gap[at];
        before = this.start[at] + duration[at];
        reach = Math.max(reach, before);
        this.reach[at] = reach;
      });
      this.firsts.push(first + count);
    }
  }

  end(at) { return this.start[at] + this.schedule.duration[at]; }

  /** Return the first span of a track that ends at a time or later, or after which one of the track does. */
  firstAfter(track, time) {
    let [low, high] = [this.firsts[track], this.firsts[track + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.reach[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Return the longest span of a track at a time, give or take `slack`; null where there is none. */
  find(track, time, slack) {
    let best = -1;
    for (let at = this.firstAfter(track, time - slack); at < this.firsts[track + 1] && this.start[at] - slack <= time; at += 1) {
      if (time <= this.end(at) + slack && (best < 0 || this.schedule.duration[at] > this.schedule.duration[best])) best = at;
    }
    return best < 0 ? null : this.at(best);
  }

  /** List, in steps, the longest spans of the critical path in the order of their starts. */
  *longestCritical(most) {
    const { critical, duration } = this.schedule;
    const longest = []; // the longest first, of equals the first
    yield* lookAtEach(this.count, (at) => {
      if (!critical[at] || (longest.length === most && duration[at] <= duration[longest.at(-1)])) return;
      const shorter = longest.findIndex((other) => duration[other] < duration[at]);
      longest.splice(shorter < 0 ? longest.length : shorter, 0, at);
      longest.splice(most);
    });
    return longest.sort((a, b) => this.start[a] - this.start[b] || duration[b] - duration[a] || a - b).map((at) => this.at(at));
  }

  trackOf(at) { return this.firsts.findIndex((_, track) => at < this.firsts[track + 1]); }

  at(at) {
    const { schedule } = this;
    return {
      track: this.trackOf(at), start: this.start[at], duration: schedule.duration[at], kind: schedule.kinds[schedule.kind[at]],
      waited: schedule.waited[at], why: schedule.whys[schedule.why[at]], critical: Boolean(schedule.critical[at]),
      node: schedule.node[at], copy: schedule.copy[at], source: schedule.sources[schedule.source[at]],
      sharing: schedule.sharing[at] || "",
    };
  }
}
