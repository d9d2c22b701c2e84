"""Compare simulated with real steps of ninety programs, on this computer's CPU.

Run: python benchmarks/schedule_accuracy.py [--steps N] [--processes N] [PROGRAM ...]. Each step that TensorFlow traces
is simulated with the node times of that step; the executor's fixed times are measured beside, on graphs of their own.
Steps in which a thread had no core for a while are left out where there are enough others, so a quiet computer is
worth much. Where in memory the data of a graph lie differs from process to process, and with it the time between small
nodes: a ratio is the median of all processes' ratios. The quartiles are those of a process's steps, the lowest and the
highest of all processes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from simplace.measure.measurement import Measured, MeasureOptions, measure_target
from simplace.measure.step_comparison import StepAgreement, check_schedule, fixed_times

_FILES = {
    "accuracy_models.py": ("even", "uneven", "chain", "cnn", "lstm"),
    "accuracy_models_unseen.py": (
        *("attention", "adam", "nested", "gru", "separable", "embedding", "beam", "stencil", "solving", "spectrum"),
        *("text", "mapped", "branching", "mixture", "sorting"),
    ),
    "accuracy_models_fresh.py": (
        *("kalman", "ranking", "clustering", "residual", "decoding", "augmenting", "ragged", "conjugate", "penalty"),
        "pricing",
    ),
    "accuracy_models_last.py": (
        *("messages", "neighbours", "dilated", "autoencoder", "rollout", "orbits", "viterbi", "ensemble", "chains"),
        "pyramid",
    ),
    "accuracy_models_frozen.py": (
        *("routing", "flow", "transport", "towers", "integrating", "speech", "segmenting", "leapfrog", "pages"),
        "fitting",
    ),
    "accuracy_models_late.py": (
        *("diffusing", "experts", "acting", "particles", "warping", "tracing", "alternating", "forest", "tagging"),
        "life",
    ),
    "accuracy_models_after.py": (
        *("quantizing", "translating", "contrasting", "painting", "sketching", "choosing", "hunting", "clicking"),
        *("detecting", "remembering"),
    ),
    "accuracy_models_sized.py": (
        *("carving", "judging", "boosting", "drifting", "unfolding", "distilling", "pursuing", "parsing", "adapting"),
        "reviewing",
    ),
    "accuracy_models_apart.py": (
        *("voting", "denoising", "steering", "recommending", "bidding", "mixing", "hopping", "indexing", "flowing"),
        "hedging",
    ),
}
PROGRAMS = {name: Path(__file__).with_name(file) for file, names in _FILES.items() for name in names}


def main() -> None:
    """Print a table, and in a line how far off the ratios are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)} (default: all)")
    parser.add_argument("--steps", type=int, default=40, help="steps to trace (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=3, help="runs of each program (default: %(default)s)")
    options = parser.parse_args()
    print("| program | inter-op | measured ms | simulated ms | ratio | quartiles | steps | same order | disturbed |")
    print("|---|---|---|---|---|---|---|---|---|")
    fixed, ratios = [], []
    chosen = MeasureOptions([(1, 1), (2, 1)], warm_up=120, steps=options.steps, probes=True, timeout=900)
    for name in options.programs or PROGRAMS:
        found = []
        for _ in range(options.processes):
            measured = measure_target(f"{PROGRAMS[name]}:{name}", chosen, Measured)
            found.append(check_schedule(measured))
            fixed.append(f"{name}: {fixed_times(measured)}")
        for runs in zip(*found, strict=True):
            ratios.append(median(one.ratio for one in runs))
            print(f"| {name} | {_describe_runs(runs)} |", flush=True)
    print(f"\n{_describe_errors(ratios)}\n\nthe executor's fixed times\n", *fixed, sep="\n")


def _describe_runs(runs: Sequence[StepAgreement]) -> str:
    """Return the cells of a setting: medians over its processes."""
    measured, simulated = (
        median(time) / 1e6 for time in zip(*((one.measured, one.simulated) for one in runs), strict=True)
    )
    ratios = [one.ratio for one in runs]
    same, held = (sum(count) for count in zip(*((one.same_order, one.held) for one in runs), strict=True))
    return (
        f"{runs[0].inter_op} | {measured:.2f} | {simulated:.2f} | {median(ratios):.3f} "
        f"| {min(one.low for one in runs):.3f} to {max(one.high for one in runs):.3f} "
        f"| {sum(one.steps for one in runs)} | {same}/{held} "
        f"| {max(one.disturbed for one in runs):.0%}"
    )


def _describe_errors(ratios: Sequence[float]) -> str:
    errors = [abs(ratio - 1) for ratio in ratios]
    far = sum(error > 0.1 for error in errors)
    return f"{len(errors)} rows: {median(errors):.1%} off in the median, {max(errors):.1%} at most, {far} more than 10%"


if __name__ == "__main__":
    main()
