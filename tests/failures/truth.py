"""What TensorFlow itself does with each program: run as a process that imports TensorFlow once and forks for each.

`python -m tests.failures.truth < cases.json` writes a JSON object: for each name the error that ended it, "" for none.
"""

from __future__ import annotations

import importlib
import json
import linecache
import os
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

_IDLE = 10.0  # a program that computes nothing for so many seconds, and could not, waits forever
_LEAST = 0.1  # seconds of the processor's time that count as computing
_LONGEST = 180.0
_HANGS = "it does not end"
_NAMES = {
    "cpus": 'FIRST, SECOND, AUTO = "CPU:0", "CPU:1", True\n',
    "gpus": 'FIRST, SECOND, AUTO = "GPU:0", "GPU:1", "auto"\n',
}


def main() -> None:
    """Run the programs on standard input."""
    cases = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    os.environ.update(CUDA_VISIBLE_DEVICES="NoDevFiles", TF_CPP_MIN_LOG_LEVEL="3", SIMPLACE_GPU_COUNT="2")
    os.environ["SIMPLACE_GPU_MEMORY"] = str(16 << 30)
    importlib.import_module("tensorflow")
    importlib.import_module("keras")
    found = {case["name"]: _run_apart(case) for case in cases}
    os.write(out, json.dumps(found).encode())


def _run_apart(case: dict[str, Any]) -> str:
    """Run a program in a fork; return its error."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as answer:
            answer.write(_run(case))
        os._exit(0)
    os.close(writer)
    text = _read_until_idle(reader, pid)
    if text is None:
        os.kill(pid, signal.SIGKILL)
        text = _HANGS.encode()
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"ended by signal {-status}" if status < 0 and not text else text.decode()


def _read_until_idle(reader: int, pid: int) -> bytes | None:
    """Return what a process writes until it closes the pipe; None if it computes nothing for long."""
    text, start, last, used = b"", time.monotonic(), time.monotonic(), 0.0
    while time.monotonic() - last < _IDLE and time.monotonic() - start < _LONGEST:
        if select.select([reader], [], [], 1.0)[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                return text
            text += part
        now = _read_used_time(pid)
        if now - used > _LEAST or _is_runnable(pid):
            last, used = time.monotonic(), now
    return None


def _read_used_time(pid: int) -> float:
    """Return the processor's time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_runnable(pid: int) -> bool:
    """Return whether a thread of a process would compute on a processor, which others may have."""
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # of a thread that has ended since
            if stat.read_text().rpartition(") ")[2].startswith("R"):
                return True
    return False


def _run(case: dict[str, Any]) -> str:
    """Run a program here, on its devices."""
    import tensorflow as tf

    if case["truth"] == "cpus":
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    else:
        from tensorflow.python.framework import load_library

        load_library.load_pluggable_device_library(case["plugin"])
    text = _NAMES[case["truth"]] + case["text"]
    linecache.cache["model.py"] = (len(text), None, text.splitlines(keepends=True), "model.py")  # AutoGraph reads it
    try:
        exec(compile(text, "model.py", "exec"), {"__name__": "__main__", "__file__": "model.py"})
    except Exception as error:
        return "".join(traceback.format_exception_only(error))[:4000] or "an error"
    return ""


if __name__ == "__main__":
    main()
