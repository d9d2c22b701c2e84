"""Try many inputs by hand: `python -m tests.hostile 20000 --seed 1 --tf --write docs/reliability.md`.

Prints what ended badly, with the numbers to make it again, and a table by kind of input. With `--tf`, TensorFlow is
asked about each graph. `--write` puts the table into a page, under the heading "Hostile input". `--jobs N` works in so
many processes, each of which tries one input at a time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path

from tests.filled_page import fill_page
from tests.hostile.judge import Ending, judge
from tests.hostile.model_oracle import ModelAnswer, ask_models
from tests.hostile.oracle import Answer, ask, graphs_of

_PIECE = 400  # inputs for one process
_BAD = ("traceback", "hang", "memory", "died", "lines")


def main(words: Sequence[str]) -> int:
    """Try inputs; return 1 if any ended badly."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after so long, with what was tried until then")
    parser.add_argument("--tf", action="store_true", help="ask TensorFlow, too")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many processes at once (default: 1)")
    parser.add_argument("--write", metavar="PAGE", type=Path)
    options = parser.parse_args(words)
    endings: list[Ending] = []
    answers: list[Answer] = []
    models: list[ModelAnswer] = []
    deadline = time.time() + 60 * options.minutes
    last = options.first + options.count
    pieces = [range(first, min(first + _PIECE, last)) for first in range(options.first, last, _PIECE)]
    with ProcessPoolExecutor(options.jobs) as pool:
        asked = [pool.submit(_try_inputs, options.seed, piece, options.tf, deadline) for piece in pieces]
        for future in as_completed(asked):
            found, answered, loaded = future.result()
            wrong = [*filter(_is_finding, found), *filter(_is_wrong, answered), *filter(_is_wrong_model, loaded)]
            for finding in wrong:
                print(finding, flush=True)
            endings += found
            answers += answered
            models += loaded
    text = table(endings, answers, models, f"{len(endings):,} inputs of seed {options.seed}")
    print(text)
    if options.write:
        fill_page(options.write, "python -m tests.hostile", text)
    return int(any(map(_is_finding, endings)) or any(map(_is_wrong, answers)) or any(map(_is_wrong_model, models)))


def _try_inputs(
    seed: int, numbers: range, asks: bool, deadline: float
) -> tuple[list[Ending], list[Answer], list[ModelAnswer]]:
    """Try the inputs of some numbers, none after the deadline."""
    if time.time() > deadline:
        return [], [], []
    endings = judge(seed, numbers)
    return (endings, ask(graphs_of(seed, numbers)), ask_models(seed, numbers)) if asks else (endings, [], [])


def _is_finding(ending: Ending) -> bool:
    return ending.is_finding


def _is_wrong(answer: Answer) -> bool:
    return answer.is_wrongly_accepted or answer.is_wrongly_refused or not answer.is_reason_alike


def _is_wrong_model(answer: ModelAnswer) -> bool:
    return answer.is_wrongly_accepted or answer.is_wrongly_refused


def table(endings: Sequence[Ending], answers: Sequence[Answer], models: Sequence[ModelAnswer], title: str) -> str:
    """Write the table of what was tried, in Markdown."""
    counts = Counter((ending.kind, ending.how) for ending in endings)
    lines = [
        f"{title}:",
        "",
        "| input | tried | done | refused in a line | tracebacks | hangs | over 1 GB | process ended | more lines |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for kind in sorted({ending.kind for ending in endings}):
        cells = [sum(counts[kind, how] for how in ("done", "refused", *_BAD))]
        cells += [counts[kind, how] for how in ("done", "refused", *_BAD)]
        lines.append(f"| {kind} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    every = Counter(ending.how for ending in endings)
    totals = [every[how] for how in ("done", "refused", *_BAD)]
    lines.append(f"| all | {' | '.join(f'{cell:,}' for cell in [len(endings), *totals])} |")
    return "\n".join([*lines, *_judgement(answers), *_judgement_of_models(models)])


def _judgement(answers: Sequence[Answer]) -> list[str]:
    if not answers:
        return []
    both = sum(1 for one in answers if one.ours and one.theirs and not one.is_of_shapes)
    rows = (
        ("both import it", sum(1 for one in answers if not one.ours and not one.theirs)),
        ("both refuse it", both),
        ("TensorFlow alone refuses it: wrong acceptances", sum(one.is_wrongly_accepted for one in answers)),
        ("simplace alone refuses it: wrong refusals", sum(one.is_wrongly_refused for one in answers)),
        ("both refuse it, for different reasons", sum(not one.is_reason_alike for one in answers)),
        (
            "both refuse it, TensorFlow for its shapes, simplace for what it finds first",
            sum(one.is_of_shapes for one in answers),
        ),
    )
    return [
        "", f"{len(answers):,} graphs among them, compared with `tf.graph_util.import_graph_def` of TensorFlow "
        f"{version('tensorflow')}:", "", "| graphs that | number |", "| --- | --: |",
        *[f"| {what} | {number:,} |" for what, number in rows],
    ]  # fmt: skip


def _judgement_of_models(models: Sequence[ModelAnswer]) -> list[str]:
    if not models:
        return []
    kinds = {"SavedModels": "S", ".keras files": "."}
    own = [[one for one in models if one.kind.startswith(start)] for start in kinds.values()]
    rows = (
        ("both load it", [sum(not (one.ours or one.theirs) for one in each) for each in own]),
        ("both refuse it", [sum(bool(one.ours and one.theirs) for one in each) for each in own]),
        ("TensorFlow alone refuses it: wrong acceptances", [sum(one.is_wrongly_accepted for one in e) for e in own]),
        (
            "TensorFlow alone refuses it, for Python objects around the functions",
            [sum(one.is_of_objects for one in e) for e in own],
        ),
        ("simplace alone refuses it: wrong refusals", [sum(one.is_wrongly_refused for one in e) for e in own]),
        ("simplace alone refuses it, as what it cannot place", [sum(one.is_limit for one in e) for e in own]),
    )
    return [
        "", "The models among them, compared with `tf.saved_model.load` and with Keras's reading of `config.json`:", "",
        f"| models that | {' | '.join(kinds)} |", "| --- | --: | --: |",
        *[f"| {what} | {saved:,} | {keras:,} |" for what, (saved, keras) in rows],
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
