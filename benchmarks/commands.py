"""Time whole commands: `simplace --help`, and `simplace show` of random graphs on four GPUs.

Run `python -m benchmarks.commands` in the repository; benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.random_graphs import KINDS, random_graph
from viz import Column, Table, to_text

_COLUMNS = (
    Column("command"),
    Column("nodes", "right"),
    Column("processor", "right"),
    Column("wall", "right"),
    Column("memory", "right"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the graphs one after the other, show each, print the table."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package comes with its bytecode
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        rows = [("--help", "-", *_least(["--help"], options.repeats))]
        for size in options.sizes:
            for kind in options.kinds:
                path = Path(folder, f"{kind}.pb")
                path.write_bytes(random_graph(kind, size))
                show = ["show", str(path), "--devices", "cpu:1,gpu:4", "--soft"]
                rows.append((f"show {path.name}", f"{size:,}", *_least(show, options.repeats)))
    print(to_text(Table(_COLUMNS, tuple(rows))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(10_000,), metavar="N", help="nodes of each graph")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="runs, of which the best counts")
    return parser


def _least(words: Sequence[str], repeats: int) -> tuple[str, str, str]:
    """Run a command some times; return its least processor time, wall time and memory."""
    processor, wall, memory = zip(*(_run(words) for _ in range(repeats)), strict=True)
    return f"{min(processor):.2f} s", f"{min(wall):.2f} s", f"{min(memory) / 1024:.0f} MiB"


def _run(words: Sequence[str]) -> tuple[float, float, int]:
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "simplace", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, f"simplace {' '.join(words)} ends with exit status 0"
    return used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss


if __name__ == "__main__":
    main()
