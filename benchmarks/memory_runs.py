"""Run steps within a limit of TensorFlow's CPU allocator: one forked process a run, TensorFlow imported once.

Reads lines "PROGRAM BATCH LIMIT" (MB) and answers each with "runs" or "fails": whether a new process can build the
program and run two steps of it. A run that needs more memory than there is waits for ten seconds, again and again; one
that has stopped computing is ended as failed.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

MODULES = ("memory_models", "memory_models_unseen", "memory_models_fresh", "memory_models_loops")
_STUCK = 3.0  # seconds without any computing


def run_steps(tf: Any, program: str, batch: int, limit: int) -> None:
    """Build a program and run two steps, all of it in so many MB."""
    os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit)  # read when the first tensor is allocated
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    module = next(one for one in map(importlib.import_module, MODULES) if program in one.STEPS)
    step, arguments = module.STEPS[program](batch)
    step(*arguments)
    step(*arguments)


def main() -> None:
    """Answer each line of standard input."""
    sys.path.insert(0, str(Path(__file__).parent))
    import tensorflow as tf

    tf.keras.layers  # noqa: B018  what is loaded when it is first named
    for line in sys.stdin:
        program, batch, limit = line.split()
        child = os.fork()
        if not child:
            ends = 1
            try:
                run_steps(tf, program, int(batch), int(limit))
                ends = 0
            except tf.errors.ResourceExhaustedError:
                pass
            finally:
                os._exit(ends)
        print("runs" if wait_for(child) else "fails", flush=True)


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
        time.sleep(0.05)


if __name__ == "__main__":
    main()
