"""Run steps in a part of TensorFlow's CPU allocator: one forked process a run, TensorFlow imported once.

Reads lines "PROGRAM BATCH LIMIT" (bytes; 0 is all memory) and answers each with "runs", "fails", or for all memory with
the name of the file that has TensorFlow's log of a second step between two marks. A run that needs more memory than
there is waits for ten seconds, again and again; one that has stopped computing is ended as failed.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REGION_MB = 1900
_STUCK = 4.0  # seconds without any computing
_GRAIN = 256  # bytes: what the allocator rounds up to
_SMALL, _COUNT = 1 << 16, 31  # bytes and number of tensors that fill the allocator's first region


def run_step(tf: Any, program: str, batch: int, limit: int) -> None:
    """Build a program and run two steps, all of it in one region with `limit` bytes left."""
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    taken = [tf.raw_ops.Empty(shape=[_SMALL], dtype=tf.uint8) for _ in range(_COUNT)]
    tf.raw_ops.Empty(shape=[(REGION_MB - 4) << 20], dtype=tf.uint8)
    free = (REGION_MB - 2) << 20
    while limit and free - limit >= _GRAIN:  # at most half of what is free: of more, the allocator gives all
        size = min(free // 2, free - limit) // _GRAIN * _GRAIN
        taken.append(tf.raw_ops.Empty(shape=[size], dtype=tf.uint8))
        free -= size
    module = next(one for one in map(importlib.import_module, MODULES) if program in one.STEPS)
    step, arguments = module.STEPS[program](batch)
    step(*arguments)
    print("=== step", file=sys.stderr, flush=True)
    step(*arguments)
    print("=== end", file=sys.stderr, flush=True)


MODULES = ("memory_models", "memory_models_unseen")


def main() -> None:
    """Answer each line of standard input."""
    sys.path.insert(0, str(Path(__file__).parent))
    import tensorflow as tf

    tf.keras.layers  # noqa: B018  what is loaded when it is first named
    folder = Path(tempfile.mkdtemp())
    for number, line in enumerate(sys.stdin):
        program, batch, limit = line.split()
        log = folder / f"{number}.log"
        child = os.fork()
        if not child:
            with log.open("w") as file:
                os.dup2(file.fileno(), 2)
            ends = 1
            try:
                run_step(tf, program, int(batch), int(limit))
                ends = 0
            except tf.errors.ResourceExhaustedError:
                pass
            finally:
                os._exit(ends)
        has_run = wait_for(child)
        print((log if has_run else "fails") if limit == "0" else ("runs" if has_run else "fails"), flush=True)
        if limit != "0":
            log.unlink()


def wait_for(child: int) -> bool:
    """Return whether a process ends well; end it where it has stopped computing."""
    computed, since = -1, time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        ticks = sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
        if ticks > computed + 1:
            computed, since = ticks, time.monotonic()
        elif time.monotonic() - since > _STUCK:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.1)


if __name__ == "__main__":
    main()
