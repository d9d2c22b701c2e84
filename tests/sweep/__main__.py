"""The command: `python -m tests.sweep` sweeps everything on 1, 2 and 8 GPUs and writes docs/reliability-ops.json.

It goes on where it was stopped: each process leaves a line in --state. --every N takes only each Nth name; --jobs N
runs so many processes at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import cache
from pathlib import Path

from simplace.kernels.installed import installed_version
from simplace.machine.machine import Machine
from simplace.oracle.launch import Forks, starting_by
from tests.filled_page import fill_page
from tests.sweep.batches import Batch, run
from tests.sweep.figures import FILE, Figures

_FOLDER = Path(__file__).parent
_LIST = "import json, schema, surface; print(json.dumps([schema.op_names(), surface.names()]))"
_BATCH = {"ops": 30, "surface": 40}


def main() -> int:
    """Sweep; return 1 if a process was killed or a node differs."""
    options = _parser().parse_args()
    done = _read(options.state)
    with ProcessPoolExecutor(options.jobs) as pool, options.state.open("a", encoding="utf-8") as state:
        pieces = {}
        for gpus, kind, names in _asked(options):
            left = [name for name in names if name not in done.get((gpus, kind), {})]
            for start in range(0, len(left), _BATCH[kind]):
                piece = left[start : start + _BATCH[kind]]
                pieces[pool.submit(_sweep_names, kind, piece, gpus)] = gpus, kind
        for future in as_completed(pieces):
            gpus, kind = pieces[future]
            for batch in future.result():
                print(json.dumps({"gpus": gpus, "kind": kind, **asdict(batch)}), file=state, flush=True)
                _tell(gpus, kind, batch)
    figures = Figures.of(_rows(options.state), installed_version() or "")
    print(figures.table())
    if not options.only and options.every == 1:
        FILE.write_text(json.dumps(asdict(figures), indent=1) + "\n", encoding="utf-8")
        if options.write:
            fill_page(options.write, "python -m tests.sweep", figures.table())
    return 0 if figures.are_clean else 1


def _sweep_names(kind: str, names: list[str], gpus: int) -> list[Batch]:
    with starting_by(_own_forks()):
        return run(kind, names, Machine(gpus=gpus))


@cache
def _own_forks() -> Forks:
    """Return what this process of the pool starts children by; its fork servers end with it."""
    return Forks()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 2, 8], help="machines (default: 1 2 8)")
    parser.add_argument("--kind", choices=tuple(_BATCH), nargs="+", default=list(_BATCH), help="what to sweep")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these ops or functions alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth name (default: all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many processes at once (default: 1)")
    parser.add_argument("--write", metavar="PAGE", type=Path, help="put the table between the marks of this page")
    parser.add_argument("--state", type=Path, default=Path(".sweep.jsonl"), help="what is done (default: %(default)s)")
    return parser


def _asked(options: argparse.Namespace) -> Iterator[tuple[int, str, list[str]]]:
    names = dict(zip(_BATCH, every_name(), strict=True))
    for gpus in options.gpus:
        for kind in options.kind:
            yield (
                gpus,
                kind,
                [name for name in names[kind] if not options.only or name in options.only][:: options.every],
            )


def every_name() -> tuple[list[str], list[str]]:
    """List the ops and the Python functions that the installed TensorFlow has."""
    asked = subprocess.run([sys.executable, "-c", _LIST], cwd=_FOLDER, capture_output=True, text=True, check=True)
    ops, surface = json.loads(asked.stdout.splitlines()[-1])
    return ops, surface


def _read(state: Path) -> dict[tuple[int, str], set[str]]:
    done: dict[tuple[int, str], set[str]] = {}
    for row in _rows(state):
        done.setdefault((row["gpus"], row["kind"]), set()).update(row["names"])
    return done


def _rows(state: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in state.read_text(encoding="utf-8").splitlines()] if state.exists() else []


def _tell(gpus: int, kind: str, batch: Batch) -> None:
    last = batch.names[-1] if batch.names else "the same"
    print(f"gpu:{gpus} {kind} to {last}: {batch.cases} cases, {batch.programs} placements", file=sys.stderr, flush=True)
    for line in [*batch.differing, *([f"KILLED {batch.killed}"] if batch.killed else [])]:
        print(f"    {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
