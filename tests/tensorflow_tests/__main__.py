"""The command: `python -m tests.tensorflow_tests FOLDER` runs TensorFlow's tests in a folder, plainly and observed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.tensorflow_tests.outcome_table import tell_result, write_section
from tests.tensorflow_tests.run_both import Comparison, compare_runs, run_observed, run_plainly


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the files that are asked for; return 1 where one of them does not run alike."""
    options = _parser().parse_args(arguments)
    results = _read_results(options.results)
    for script in sorted(options.folder.rglob("*_test.py")):
        name = script.relative_to(options.folder).as_posix()
        if not any(text in name for text in options.only) or (name in results and not options.again):
            continue
        plain = run_plainly(script, options.seconds)
        if not plain.is_whole:
            print(f"{name}: left out, as it ends with status {plain.status} without simplace", flush=True)
            continue
        results[name] = compare_runs(plain, run_observed(script, options.gpus, options.seconds))
        print(tell_result(name, results[name]), flush=True)
        _write_results(results, options.results)
    if options.page:
        write_section(results, options.page)
    return 0 if all(result.is_alike for result in results.values()) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.tensorflow_tests", description=__doc__)
    parser.add_argument("folder", type=Path, help="the files of tests, such as tensorflow/python of the repository")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="only those whose path contains one of the texts"
    )
    parser.add_argument("--gpus", type=int, default=2, metavar="N", help="emulated GPUs (default: 2)")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="the most that a plain run takes")
    parser.add_argument("--results", type=Path, default=Path("tensorflow_tests.json"), help="where results are added")
    parser.add_argument("--again", action="store_true", help="run those under simplace again that have a result")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table to its end, as docs/guides.md")
    return parser


def _read_results(path: Path) -> dict[str, Comparison]:
    kept: Mapping[str, dict[str, object]] = json.loads(path.read_text()) if path.exists() else {}
    return {name: Comparison(**fields) for name, fields in kept.items()}  # type: ignore[arg-type]


def _write_results(results: Mapping[str, Comparison], path: Path) -> None:
    fields = {name: asdict(result) for name, result in results.items()}
    path.write_text(json.dumps(fields, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
