"""Compare the predicted memory of a step with TensorFlow's own, on the CPU, for each program at three batch sizes.

Run: python -m benchmarks.memory [PROGRAM ...]. TensorFlow's CPU device hands out memory with the allocator of its
GPUs, if it is asked to, and counts the bytes in use; its log names every tensor, from which the bytes of tensors alone
follow. The rest is what kernels take besides. Both are the peak of a second step, on one thread, without Grappler.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from simplace.api import Settings, place
from simplace.machine.machine import Machine
from viz import Column, Table, to_text

MODELS = Path(__file__).with_name("memory_models.py")
BATCHES = (64, 256, 1000)
_STEP = """
import sys
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
tf.raw_ops.Empty(shape=[1 << 30], dtype=tf.uint8)  # one large region, as a GPU has
from memory_models import STEPS
step, arguments = STEPS[sys.argv[2]](int(sys.argv[3]))
step(*arguments)
tf.config.experimental.reset_memory_stats("CPU:0")
print("=== step", file=sys.stderr, flush=True)
result = step(*arguments)
print("=== end", file=sys.stderr, flush=True)
print(tf.config.experimental.get_memory_info("CPU:0")["peak"])
"""
_RECORD = re.compile(r"Log(TensorAllocation|TensorOutput|TensorDeallocation) .*?allocation_id: (\d+)")
_BYTES = re.compile(r"requested_bytes: (\d+)")


def main() -> None:
    """Print a row for each program and batch, then the median errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="names in memory_models.py (default: all)")
    names = re.findall(r"^def (\w+)\(batch", MODELS.read_text(encoding="utf-8"), re.MULTILINE)
    rows, errors, rest = [], [], []
    for name in parser.parse_args().programs or names:
        for batch in BATCHES:
            predicted = predict_peak(name, batch)
            in_use, tensors = measure_peak(name, batch)
            errors.append(predicted / tensors - 1)
            rest.append(predicted / in_use - 1)
            rows.append((name, f"{batch:,}", *map(_format_mib, (predicted, tensors, in_use)), f"{errors[-1]:+.1%}",
                         f"{rest[-1]:+.1%}"))  # fmt: skip
            print("\t".join(rows[-1]), file=sys.stderr, flush=True)
    heads = ("program", "batch", "predicted MiB", "tensors MiB", "in use MiB", "of tensors", "of all")
    columns = (Column(heads[0]), *(Column(head, "right") for head in heads[1:]))
    print(to_text(Table(columns, tuple(rows))))
    for what, found in (("tensors", errors), ("all", rest)):
        print(f"median error of {what}: {statistics.median(map(abs, found)):.1%}; within 5 %: "
              f"{sum(abs(each) <= 0.05 for each in found)} of {len(found)}")  # fmt: skip


def predict_peak(name: str, batch: int) -> int:
    """Return the most bytes alive at once on the CPU in a simulated step."""
    settings = Settings(machine=Machine(gpus=0), arguments=(name, str(batch)), stdout=2)
    result = place(f"{MODELS}:step", settings)
    memory = result.memory(inter_op=1, intra_op=1, warm=False)
    return max(memory.needed(use) for use in memory.uses)


def measure_peak(name: str, batch: int) -> tuple[int, int]:
    """Return the most bytes that TensorFlow has in use at once, and the most of tensors."""
    environment = {
        **os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "4000",
        "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_VMODULE": "log_memory=2",
        "TF_CPP_MIN_LOG_LEVEL": "0",
    }  # fmt: skip
    words = [sys.executable, "-c", _STEP, str(MODELS.parent), name, str(batch)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    before, during = done.stderr.split("=== end")[0].split("=== step")
    alive: dict[str, int] = {}
    follow_log(before.splitlines(), alive)
    return int(done.stdout.split()[-1]), follow_log(during.splitlines(), alive)


def follow_log(lines: list[str], alive: dict[str, int]) -> int:
    """Follow the log of tensors; return the most bytes alive at once."""
    now = peak = sum(alive.values())
    for line in lines:
        found = _RECORD.search(line)
        if found is None:
            continue
        if found[1] == "TensorDeallocation":
            now -= alive.pop(found[2], 0)
        elif found[2] not in alive:
            size = _BYTES.search(line)
            now += alive.setdefault(found[2], int(size[1]) if size else 0)
        peak = max(peak, now)
    return peak


def _format_mib(size: int) -> str:
    return f"{size / 2**20:,.1f}"


if __name__ == "__main__":
    main()
