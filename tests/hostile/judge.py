"""Run inputs in a process of their own with 5 seconds of processor each and 1 GB, and tell how each one ended.

An input ends well when the command is done, or leaves with status 2 and one line. A traceback, a line too many, a hang
and a lack of memory are findings. The process is started anew behind an input that ends it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.cases import Case, case

SECONDS = 5  # of processor, which a busy machine does not use up; those of a child count, too
WAIT = 600  # seconds, for what waits without an end
GIB = 1 << 30
LINE = 4000  # characters that the one line may have
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ending:
    """Record of how a case ended: "done", "refused" or a finding ("traceback", "lines", "hang", "memory", "died")."""

    seed: int
    number: int
    kind: str
    how: str
    said: str

    @property
    def is_finding(self) -> bool:
        """Return whether the case shows a fault of simplace."""
        return self.how not in ("done", "refused")


class _TooLong(BaseException):
    """Break into whatever takes too long."""


def judge(seed: int, numbers: Iterable[int]) -> list[Ending]:
    """Run cases of a seed, in order, and return how they ended."""
    waiting = list(numbers)
    endings: list[Ending] = []
    while waiting:
        command = [sys.executable, "-m", "tests.hostile.judge", str(seed), str(waiting[0]), str(waiting[-1] + 1)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as child:
            assert child.stdout is not None
            found = [Ending(**json.loads(line)) for line in child.stdout]
        endings += found
        waiting = waiting[len(found) :]
        if waiting:  # the next one ended the process
            endings.append(Ending(seed, waiting[0], case(seed, waiting[0]).kind, "died", f"status {child.returncode}"))
            waiting = waiting[1:]
    return endings


def run(one: Case) -> tuple[str, str]:
    """Run a case in the working directory; return how it ended and what it said on stderr."""
    from simplace.cli import main

    out, err = io.StringIO(), io.StringIO()
    status: object = None
    before = _child_seconds()
    _set_timers(SECONDS, WAIT)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(one.words)
    except SystemExit as left:
        status = left.code
    except _TooLong:
        return "hang", "".join(traceback.format_exc().splitlines(keepends=True)[-8:])
    except MemoryError:
        return "memory", "".join(traceback.format_exc().splitlines(keepends=True)[-8:])
    except BaseException:
        return "traceback", "".join(traceback.format_exc().splitlines(keepends=True)[-12:])
    finally:
        _set_timers(0, 0)
    said = err.getvalue()
    if _child_seconds() - before > SECONDS:
        return "hang", "a child"
    if status in (0, 1):
        return "done", ""
    is_one_line = status == 2 and said.count("\n") == 1 and len(said) < LINE and said.startswith("simplace: ")
    return ("refused" if is_one_line else "lines"), said[-LINE:]


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _set_timers(seconds: float, wait: float) -> None:
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, _raise_too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, wait)


def _raise_too_long(*_: object) -> None:
    raise _TooLong


@contextlib.contextmanager
def files_of(one: Case) -> Iterator[Path]:
    """Make the files of a case in a folder, which is the working directory meanwhile."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    for name, data in one.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def _main(seed: int, first: int, stop: int) -> None:
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + GIB, used + GIB))  # not of the address space: libraries are large
    for number in range(first, stop):
        one = case(seed, number)
        with files_of(one):
            how, said = run(one)
        answer.write(json.dumps(vars(Ending(seed, number, one.kind, how, said))) + "\n")


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:4]))
