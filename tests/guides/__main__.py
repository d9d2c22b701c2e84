"""The command: `python -m tests.guides FOLDER` runs the notebooks under a folder, each as plain Python and observed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simplace.oracle.launch import Forks, starting_by
from tests.guides.convert_notebook import convert_notebook
from tests.guides.guide_table import write_page
from tests.guides.run_guide import GuideRun, run_observed, run_plainly, without_chance

_RESULTS = Path("docs/guides.json")
_PRELUDE = Path(__file__).with_name("prelude.py")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the notebooks that are asked for; return 1 where one of them does not run alike."""
    options = _parser().parse_args(arguments)
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    os.environ["PYTHONHASHSEED"] = "0"  # AutoGraph writes sets of names
    found = sorted(path for path in options.folder.rglob("*.ipynb") if _is_wanted(path, options))
    with Forks() as forks, starting_by(forks):
        for path in found:
            name = path.relative_to(options.folder).with_suffix("").as_posix()
            for run in _run_guide(path, options):
                results.setdefault(name, {})[str(run.gpus)] = asdict(run)
                options.results.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    if options.page:
        write_page(results, options.page)
    return 0 if all(run["agrees"] and not run["failure"] for each in results.values() for run in each.values()) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.guides", description=__doc__)
    parser.add_argument("folder", type=Path, help="the notebooks, such as site/en of the repository tensorflow/docs")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="only those whose path contains one of the texts"
    )
    parser.add_argument("--gpus", nargs="+", type=int, default=[1, 2], metavar="N", help="machines (default: 1 2)")
    parser.add_argument("--seconds", type=float, default=240.0, metavar="S", help="the most that one run takes")
    parser.add_argument(
        "--results", type=Path, default=_RESULTS, help="where results are kept and added (default: docs/guides.json)"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table there, such as docs/guides.md")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the scripts and their outputs there")
    return parser


def _is_wanted(path: Path, options: argparse.Namespace) -> bool:
    return any(text in path.as_posix() for text in options.only)


def _run_guide(path: Path, options: argparse.Namespace) -> Iterator[GuideRun]:
    """Run one notebook on each machine, each time in a folder of its own."""
    text = convert_notebook(path)
    with _folder(path.stem, options.keep) as folder:
        plain = None
        for gpus in options.gpus:
            if plain is None or (gpus > 1 and "tf.distribute" in text):
                plain = run_plainly(_write_script(folder / f"plain{gpus}", path.stem, text), gpus, options.seconds)
            script = _write_script(folder / f"gpu{gpus}", path.stem, text)
            run = run_observed(script, gpus, options.seconds, plain)
            if run.differing:  # what differs from one plain run to the next tells nothing
                again = run_plainly(_write_script(folder / f"again{gpus}", path.stem, text), gpus, options.seconds)
                run = without_chance(run, plain, again)
            _print_run(path.stem, plain.seconds, run)
            yield run


@contextmanager
def _folder(name: str, kept: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=kept)).resolve()
    try:
        yield folder
    finally:
        if kept is None:
            shutil.rmtree(folder)


def _write_script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir()
    shutil.copy(_PRELUDE, folder)
    script = folder / f"{name}_guide.py"  # a notebook may have the name of a package
    script.write_text(text, encoding="utf-8")
    return script


def _print_run(name: str, plain: float, run: GuideRun) -> None:
    said = "alike" if run.is_alike else "DIFFERS"
    print(f"{name} gpu:{run.gpus}: {said}, {run.seconds:.0f} s (plain {plain:.0f} s); {run.verdict}", flush=True)
    if run.failure:
        print(f"  {run.failure}", flush=True)
    for one, other in run.differing[:6]:
        print(f"  plain:    {one[:150]}\n  simplace: {other[:150]}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
