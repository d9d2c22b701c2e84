"use strict";
// Long work in steps, between which the browser draws and listens; one piece of work after the other.

const STEP = 10000; // nodes, siblings, texts or events that are looked at in one step
const channel = new MessageChannel();
const jobs = []; // the first is being done
let isAtWork = false;
channel.port1.onmessage = () => continueJobs();

/** Do work as its steps come, then `act`. After each `yield` the browser does what else it has to do; without one all is done at once. */
function doInSteps(steps, act = () => {}) {
  jobs.push({ steps, act });
  if (!isAtWork) continueJobs();
}

function continueJobs() {
  isAtWork = true;
  while (jobs.length) {
    let isDone = true; // also where it throws
    try {
      isDone = jobs[0].steps.next().done;
      if (isDone) jobs[0].act();
    } finally {
      if (isDone) jobs.shift();
      isAtWork = jobs.length > 0;
    }
    if (!isDone) { channel.port2.postMessage(null); return; }
  }
}

/** Do something once all that was asked for before is done. */
function doAfterwards(act) { doInSteps([].values(), act); }

/** Look at each number below `count`, in steps; after many, what follows is a step of its own. */
function* lookAtEach(count, look) {
  for (let i = 0; i < count; i += 1) {
    look(i);
    if (i % STEP === STEP - 1) yield;
  }
  if (count > STEP) yield;
}

/** Do all of some work now. */
function doAtOnce(steps) {
  while (!steps.next().done);
}

/** Do work in steps while the browser has nothing else to do. */
function doWhenIdle(steps) {
  requestIdleCallback(() => { if (!steps.next().done) doWhenIdle(steps); });
}
