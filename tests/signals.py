"""Send signals to runs at many moments, and look what they leave: `python -m tests.signals [--write FILE]`.

Each run starts on a cache of its own that is empty at first, so that it compiles, runs a program, places it and draws.
What was seen becomes a table, which `--write` puts between the marks of a page.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.filled_page import fill_page

ROOT = Path(__file__).resolve().parents[1]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
MOMENTS = (0.02, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)  # seconds after the start
COMMANDS = (("show", "-o", "figure.svg"), ("check",), ("report", "-o", "page.html"))
OWN = "SIMPLACE_TEST_SIGNALS"
PROGRAM = """
import subprocess, sys, time
import tensorflow as tf
@tf.function
def train(x):
    return tf.matmul(x, x) if x[0, 0] > 0 else x
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(train(tf.ones([4, 4])).shape, flush=True)
time.sleep(1)
other.kill()
"""


@dataclass(frozen=True)
class Trial:
    """Record of one run: when which signal came, and what was seen after it."""

    number: signal.Signals
    had_ended: bool
    status: int
    lines: int
    files: tuple[str, ...]
    processes: int

    @property
    def as_it_should(self) -> bool:
        """Return whether the status tells the signal: as 128 and its number, or by dying of it."""
        return self.status in (128 + self.number, -self.number)


class Place:
    """A folder with a program, and what runs there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("temporary", "cache", "here"):
            (folder / name).mkdir()
        (folder / "here/model.py").write_text(PROGRAM)
        places = {"TMPDIR": str(folder / "temporary"), "XDG_CACHE_HOME": str(folder / "cache")}
        self.environment = {**os.environ, **places, "PYTHONPATH": str(ROOT), OWN: str(folder)}

    def run(self, command: Sequence[str], number: signal.Signals, moment: float) -> Trial:
        """Run a command, and send it a signal."""
        words = [sys.executable, "-m", "simplace", command[0], "model.py", "--devices", "gpu:2", *command[1:]]
        started = subprocess.Popen(
            words, env=self.environment, cwd=self.folder / "here", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            preexec_fn=_hear_signals,
        )  # fmt: skip
        time.sleep(moment)
        had_ended = started.poll() is not None
        started.send_signal(number)
        _, said = started.communicate()
        end = time.monotonic() + 10
        while list(self.processes()) and time.monotonic() < end:
            time.sleep(0.1)
        if number == signal.SIGKILL:  # the next run sweeps
            subprocess.run([sys.executable, "-c", SWEEP], env=self.environment, check=True)
        return Trial(number, had_ended, started.returncode, said.count(b"\n"), self.left(), len(list(self.processes())))

    def left(self) -> tuple[str, ...]:
        """List what should not be there; figures are asked for, and the cache keeps what was built."""
        places = (self.folder / "temporary", self.folder / "cache/simplace", self.folder / "here")
        names = [path.name for place in places if place.exists() for path in place.iterdir()]
        return tuple(name for name in names if Path(name).suffix not in (".so", ".zip", ".py", ".svg", ".html"))

    def processes(self) -> Iterator[int]:
        """Yield what still runs."""
        wanted = f"{OWN}={self.folder}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (path / "environ").read_bytes():
                    yield int(path.name)
            except OSError:
                continue


SWEEP = """
from simplace.oracle.cache import cache_folder
from simplace.oracle.scratch import scratch_folder

for parent in (None, cache_folder()):
    with scratch_folder(parent): pass
"""


def _hear_signals() -> None:
    for number in SIGNALS[:3]:
        signal.signal(number, signal.SIG_DFL)


def trials() -> Iterator[Trial]:
    """Try every signal at every moment of every command; a line each tells how it goes."""
    for command in COMMANDS:
        for number in SIGNALS:
            with tempfile.TemporaryDirectory() as folder:
                place = Place(Path(folder))
                for moment in MOMENTS:
                    one = place.run(command, number, moment)
                    print(command[0], number.name, moment, one, flush=True)
                    if not one.had_ended:
                        yield one


def table(tried: Sequence[Trial]) -> str:
    """Write what was seen, a signal a row."""
    heads = ("signal", "runs it came to", "another status", "more than one line", "files left", "processes left")
    rows = [heads, tuple("--" for _ in heads)]
    for number in SIGNALS:
        own = [one for one in tried if one.number == number]
        counts = (
            len(own), sum(not one.as_it_should for one in own), sum(one.lines > 1 for one in own),
            sum(map(len, (one.files for one in own))), sum(one.processes for one in own),
        )  # fmt: skip
        rows.append((number.name, *map(str, counts)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Try, print the table, and write it where it is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.signals")
    parser.add_argument("--write", metavar="FILE", type=Path, help="put the table between the marks of this page")
    options = parser.parse_args()
    made = table(list(trials()))
    print(made)
    if options.write:
        fill_page(options.write, "python -m tests.signals", made)


if __name__ == "__main__":
    main()
