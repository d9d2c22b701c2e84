"""Find the training loops of one's own that `tf.distribute.MirroredStrategy` could run on all GPUs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from simplace.suggestions.changes import MirroredReplicas
from simplace.suggestions.edits import Edit, Insertion, Replacement, Wrapping, replace_node
from simplace.suggestions.estimated_step import count_step_examples
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.layer_edits import can_hold_functions, insert_functions
from simplace.suggestions.mirrored_changes import list_busy_gpus, names_strategy, time_elements
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.training_loops import TrainingLoop, read_loop

_FIRST_KERAS = (3, 8)  # the first that divides losses by the number of replicas (keras/src/losses/loss.py)
_STRATEGY, _DECORATOR = "strategy", "on_each_gpu"
_HELPER = f'''
{_STRATEGY} = tf.distribute.MirroredStrategy()


def {_DECORATOR}(step):
    """Run a training step on each GPU, with its part of the batch, and add up the losses that are returned."""

    @functools.wraps(step)
    def run(*parts):
        loss = {_STRATEGY}.run(step, args=parts)
        return None if loss is None else {_STRATEGY}.reduce("SUM", loss, axis=None)

    return run
'''


def find_mirrored_loops(evidence: Evidence) -> Iterator[MirroredReplicas]:
    """Find the loops that train by a function which computes on one GPU of several."""
    program, replicas = evidence.placed.placement.program, len(evidence.gpus)
    if program.kind != "function" or program.role or replicas < 2 or len(list_busy_gpus(evidence.schedule)) != 1:
        return
    if names_strategy(evidence):
        return
    for source in evidence.files:
        loop = read_loop(source, program.name) if can_hold_strategy(source) else None
        if loop is not None and (loop.mean is not None or _divides_losses()):
            yield MirroredReplicas(
                edits=write_strategy(source, loop),
                at=f"{source.name}:{loop.making[0].lineno}",
                replicas=replicas,
                examples=count_step_examples(evidence.schedule),
                copied=time_elements(evidence, replicas),
            )


def can_hold_strategy(source: SourceFile) -> bool:
    """Return whether the functions that the patch adds can stand in a file, and their names are free."""
    names = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    return can_hold_functions(source) and not names & {_STRATEGY, _DECORATOR, "functools"}


def write_strategy(source: SourceFile, loop: TrainingLoop) -> tuple[Edit, ...]:
    """Return the edits that make what a step uses under a strategy, run it on each GPU, and distribute its datasets."""
    first, last = loop.making[0], loop.making[-1]
    datasets = (
        replace_node(source, one, f"{_STRATEGY}.experimental_distribute_dataset({source.segment(one)})")
        for one in loop.datasets
    )
    return (
        *insert_functions(source, (), [_HELPER]),
        Wrapping(source.name, first.lineno, last.end_lineno or last.lineno, f"with {_STRATEGY}.scope():"),
        Insertion(source.name, loop.decorator.end_lineno or loop.decorator.lineno, f"@{_DECORATOR}"),
        *datasets,
        _build_slots(source, loop),
        *([] if loop.mean is None else [_divide(source, loop.mean, loop.loss)]),
    )


def _build_slots(source: SourceFile, loop: TrainingLoop) -> Replacement:
    """Return the edit that makes the optimizer's variables under the strategy, before the first step.

    TensorFlow fails to run a first call that makes variables for several replicas: seen on two CPUs, with an argument
    of int32 (TensorFlow 2.21). A model that is not built by then fails here, and so is not suggested.
    """
    last = loop.making[-1]
    return _add_line(source, last, f"    {loop.optimizer}.build({source.segment(loop.variables)})")


def _divide(source: SourceFile, mean: ast.stmt, loss: str) -> Replacement:
    """Return the edit that divides the mean over a replica's part: the gradients of all replicas are added up."""
    return _add_line(source, mean, f"{loss} /= {_STRATEGY}.num_replicas_in_sync")


def _add_line(source: SourceFile, after: ast.stmt, text: str) -> Replacement:
    """Return the edit that adds a line after a statement, indented like its first line."""
    end = after.end_lineno or after.lineno
    place = end, source.column(end, after.end_col_offset or 0)
    indent = source.lines[after.lineno - 1][: source.column(after.lineno, after.col_offset)]
    return Replacement(source.name, place, place, f"{source.newline}{indent}{text}")


def _divides_losses() -> bool:
    """Return whether the installed Keras divides a loss by the number of replicas, as an average over all needs."""
    try:
        major, minor = version("keras").split(".")[:2]
    except PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= _FIRST_KERAS
