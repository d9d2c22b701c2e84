"""Solve the placement problems of github.com/msr-fiddle/dnn-partitioning and compare with the best known results.

    python -m benchmarks.splits FOLDER                            # each problem, a minute each
    python -m benchmarks.splits FOLDER --seconds 10 --problem bert24 --prove

FOLDER has `problems/*.json` as in that repository's `throughput-inputs` and `latency-inputs`, named
OBJECTIVE-GRAPH-NAME.json with the objective `throughput` or `latency`, and may have `results.csv` with the columns
problem, value, feasible (0: breaks a limit, and does not count), and `split`, a file with `device_of_node`.
"""

from __future__ import annotations

import argparse
import csv
import json
from math import inf
from pathlib import Path
from time import monotonic

from simplace.optimize import Output, PlacementProblem, solve
from simplace.optimize.objectives import OBJECTIVES, ObjectiveName

COLUMNS = "{:40} {:>10} {:>10} {:>7} {:>10} {:>7} {:>8}  {}"


def main() -> None:
    """Print a line for each problem."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each problem (60)")
    parser.add_argument("--problem", default="", metavar="PART", help="only problems with this in their name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prove", action="store_true", help="with CP-SAT beside the search")
    options = parser.parse_args()
    files = sorted(file for file in (options.folder / "problems").glob("*.json") if options.problem in file.stem)
    known = _read_best(options.folder)
    _check_splits(options.folder)
    print(COLUMNS.format("problem", "best known", "ours", "ratio", "bound", "gap", "seconds", "method"), flush=True)
    for file in files:
        problem, _ = read_problem(file)
        begin, found = monotonic(), [(0.0, inf)]

        def note(value: float, begin: float = begin, found: list[tuple[float, float]] = found) -> None:
            if value < found[-1][1]:
                found.append((monotonic() - begin, value))

        placed = solve(
            problem,
            _objective(file.stem),
            seconds=options.seconds,
            seed=options.seed,
            prove=options.prove,
            report=lambda best, note=note: note(best.value),  # type: ignore[misc]
        )
        best = known.get(file.stem, inf)
        figures = (f"{best:.3f}", f"{placed.value:.3f}", f"{placed.value / best:.4f}", f"{placed.bound:.3f}")
        print(
            COLUMNS.format(file.stem, *figures, f"{placed.gap:.1%}", f"{found[-1][0]:.1f}", placed.method), flush=True
        )


def _objective(name: str) -> ObjectiveName:
    return "max_load" if name.startswith("throughput") else "latency"


def _read_best(folder: Path) -> dict[str, float]:
    """Return the smallest value of each problem among the results that keep the limits."""
    best: dict[str, float] = {}
    for row in _read_results(folder):
        if row["value"] and row["feasible"] != "0":
            best[row["problem"]] = min(best.get(row["problem"], inf), float(row["value"]))
    return best


def _check_splits(folder: Path) -> None:
    """Value each split of the results again; the evaluators must agree with its row."""
    agreeing = 0
    for row in _read_results(folder):
        split = json.loads((folder / row["split"]).read_text(encoding="utf-8")) if row["split"] else {}
        if "device_of_node" not in split or row["feasible"] != "1":
            continue
        problem, ids = read_problem(folder / "problems" / f"{row['problem']}.json")
        device_of = [split["device_of_node"][str(one)] for one in ids]
        value = OBJECTIVES[_objective(row["problem"])].evaluate(problem, device_of)
        assert problem.keeps_limits(device_of), row
        assert abs(value - float(row["value"])) <= 1e-5 * value, (row, value)
        agreeing += 1
    print(f"{agreeing} splits of the results have the value and keep the limits, as their rows say.")


def _read_results(folder: Path) -> list[dict[str, str]]:
    file = folder / "results.csv"
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def read_problem(path: Path) -> tuple[PlacementProblem, list[int]]:
    """Read a problem of the repository; the ids of its nodes come along, in the order of the problem's nodes."""
    written = json.loads(path.read_text(encoding="utf-8"))
    nodes = written["nodes"]
    number = {node["id"]: at for at, node in enumerate(nodes)}
    readers: dict[int, dict[int, None]] = {}
    cost: dict[int, float] = {}
    for edge in written["edges"]:
        readers.setdefault(number[edge["sourceId"]], {})[number[edge["destId"]]] = None
        cost[number[edge["sourceId"]]] = edge["cost"]
    colours: dict[object, int] = {}
    return PlacementProblem(
        accelerators=written["maxFPGAs"],
        accelerator_bytes=written["maxSizePerFPGA"],
        accelerator_time=tuple(node["fpgaLatency"] if node["supportedOnFpga"] else inf for node in nodes),
        cpu_time=tuple(float(node["cpuLatency"]) for node in nodes),
        node_bytes=tuple(float(node["size"]) for node in nodes),
        outputs=tuple(Output(node, tuple(readers[node]), cost[node]) for node in sorted(readers)),
        group_of=tuple(
            colours.setdefault(("none", at) if node.get("colorClass") is None else node["colorClass"], len(colours))
            for at, node in enumerate(nodes)
        ),
    ), [node["id"] for node in nodes]


if __name__ == "__main__":
    main()
