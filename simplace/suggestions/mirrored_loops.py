"""Find the training loops of one's own that `tf.distribute.MirroredStrategy` could run on all GPUs.

They have the shape of Keras's guide: a model, a loss and an optimizer of Keras, a `tf.function` that computes the loss,
its gradients and the update, and loops over datasets that call it with the parts of an element. Anything else is left
alone, since nobody could tell whether each replica's part of the loss were still what it should be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from simplace.suggestions.changes import MirroredReplicas
from simplace.suggestions.edits import Edit, Insertion, Replacement, Wrapping, replace_node
from simplace.suggestions.estimated_step import count_step_examples
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.layer_edits import can_hold_functions, insert_functions
from simplace.suggestions.mirrored_changes import list_busy_gpus, names_strategy, time_elements
from simplace.suggestions.source_file import SourceFile

_FIRST_KERAS = (3, 8)  # the first that divides losses by the number of replicas (keras/src/losses/loss.py)
_STRATEGY, _DECORATOR = "strategy", "on_each_gpu"
_LOSS = re.compile(r"(^|\.)losses\.[A-Z]\w*$")
_OPTIMIZER = re.compile(r"(^|\.)optimizers\.[A-Z]\w*$")
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
    if names_strategy(evidence) or not _divides_losses():
        return
    for source in evidence.files:
        loop = read_loop(source, program.name)
        if loop is not None:
            first, last = loop.making[0], loop.making[-1]
            wrapping = Wrapping(source.name, first.lineno, last.end_lineno or last.lineno, f"with {_STRATEGY}.scope():")
            decorator = Insertion(source.name, loop.decorator.end_lineno or loop.decorator.lineno, f"@{_DECORATOR}")
            datasets = (
                replace_node(source, one, f"{_STRATEGY}.experimental_distribute_dataset({source.segment(one)})")
                for one in loop.datasets
            )
            edits: tuple[Edit, ...] = (*insert_functions(source, (), [_HELPER]), wrapping, decorator, *datasets)
            yield MirroredReplicas(
                edits=(*edits, _build_slots(source, loop)),
                at=f"{source.name}:{first.lineno}",
                replicas=replicas,
                examples=count_step_examples(evidence.schedule),
                copied=time_elements(evidence, replicas),
            )


@dataclass(frozen=True)
class _Update:
    """Record of what a training step does, by name: its loss, what makes that, the optimizer; and the variables."""

    loss: str
    maker: str
    optimizer: str
    variables: ast.expr


@dataclass(frozen=True)
class TrainingLoop:
    """Record of a training step and its loops: the decorator of the step, the datasets that are gone through.

    `making` are the statements from the first that makes what the step uses to the last one.
    """

    decorator: ast.expr
    making: tuple[ast.stmt, ...]
    datasets: tuple[ast.expr, ...]
    update: _Update


def read_loop(source: SourceFile, name: str) -> TrainingLoop | None:
    """Read the training step of a name and its loops, all at the top level of a file; None for another shape."""
    body = source.tree.body
    steps = [one for one in body if isinstance(one, ast.FunctionDef) and one.name == name]
    if len(steps) != 1 or len(steps[0].decorator_list) != 1 or not can_hold_functions(source):
        return None
    step, decorator = steps[0], steps[0].decorator_list[0]
    names = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    if not _is_function(decorator) or not _takes_parts(step) or names & {_STRATEGY, _DECORATOR, "functools"}:
        return None
    update = _read_update(step)
    if update is None:
        return None
    making = _find_making(source, body[: body.index(step)], step, update)
    datasets = _find_datasets(source, body[body.index(step) + 1 :], name)
    return TrainingLoop(decorator, making, datasets, update) if making and datasets else None


def _build_slots(source: SourceFile, loop: TrainingLoop) -> Replacement:
    """Return the edit that makes the optimizer's variables under the strategy, before the first step.

    TensorFlow fails to run a first call that makes variables for several replicas: seen on two CPUs, with an argument
    of int32 (TensorFlow 2.21). A model that is not built by then fails here, and so is not suggested.
    """
    last = loop.making[-1]
    place = last.end_lineno or last.lineno, source.column(last.end_lineno or last.lineno, last.end_col_offset or 0)
    built = f"{loop.update.optimizer}.build({source.segment(loop.update.variables)})"
    return Replacement(source.name, place, place, f"{source.newline}    {built}")


def _divides_losses() -> bool:
    """Return whether the installed Keras divides a loss by the number of replicas, as an average over all needs."""
    try:
        major, minor = version("keras").split(".")[:2]
    except PackageNotFoundError:
        return False
    return (int(major), int(minor)) >= _FIRST_KERAS


def _is_function(decorator: ast.expr) -> bool:
    """Return whether a decorator is `tf.function`, without arguments, which could say what the parts are."""
    return isinstance(decorator, ast.Attribute) and decorator.attr == "function"


def _takes_parts(step: ast.FunctionDef) -> bool:
    given = step.args
    return bool(given.args) and not (given.vararg or given.kwonlyargs or given.kwarg or given.defaults)


def _find_making(
    source: SourceFile, before: Sequence[ast.stmt], step: ast.FunctionDef, update: _Update
) -> tuple[ast.stmt, ...]:
    """Return the statements that make what a step uses, from the first to the last; () for a step of another kind."""
    used = {node.id for node in ast.walk(step) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    made = {
        target.id: (i, source.segment(one.value.func))
        for i, one in enumerate(before)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        for target in one.targets
        if isinstance(target, ast.Name) and target.id in used
    }
    (loss, loss_maker), (_, optimizer_maker) = (made.get(name, (0, "")) for name in (update.maker, update.optimizer))
    if not _LOSS.search(loss_maker) or not _OPTIMIZER.search(optimizer_maker) or _reduces(before[loss]):
        return ()
    touched = [i for i, one in enumerate(before) if made.keys() & _list_names(one) and _runs(one)]
    return tuple(before[min(touched) : max(touched) + 1])


def _runs(statement: ast.stmt) -> bool:
    """Return whether a statement does something at its place: the variables of a model may be made there."""
    return not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _reduces(statement: ast.stmt) -> bool:
    """Return whether a call says how a loss is reduced: only the mean is divided by the number of replicas."""
    keywords = (node.arg for node in ast.walk(statement) if isinstance(node, ast.keyword))
    return any(name in ("reduction", None) for name in keywords)


def _read_update(step: ast.FunctionDef) -> _Update | None:
    """Read a step that computes one loss by one call, its gradients, and the update, and returns no more than the loss.

    The optimizers of Keras add up the gradients of all replicas, and what is returned is added up, too.
    """
    gradients, updates = (_find_methods(step, name) for name in ("gradient", "apply_gradients"))
    if len(gradients) != 1 or len(updates) != 1 or len(gradients[0].args) != 2:
        return None
    assert isinstance(updates[0].func, ast.Attribute), "a method"
    loss, variables = gradients[0].args
    name, optimizer = _name_of(loss), _name_of(updates[0].func.value)
    stored = [node for node in ast.walk(step) if _name_of(node) == name and not _is_loaded(node)]
    given = [one.value for one in ast.walk(step) if isinstance(one, ast.Assign) and _name_of(one.targets[0]) == name]
    makers = [_name_of(one.func) for one in given if isinstance(one, ast.Call)]
    returned = [node.value for node in ast.walk(step) if isinstance(node, ast.Return)]
    is_loss = all(one is None or _name_of(one) == name for one in returned) and len(returned) < 2
    if not name or not optimizer or not is_loss or len(stored) != 1 or len(makers) != 1:
        return None
    is_of_model = isinstance(variables, ast.Attribute) and bool(_name_of(variables.value))
    return _Update(name, makers[0], optimizer, variables) if is_of_model else None


def _find_methods(step: ast.FunctionDef, name: str) -> list[ast.Call]:
    """Find the calls of a method."""
    calls = (node for node in ast.walk(step) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == name]


def _find_datasets(source: SourceFile, after: Sequence[ast.stmt], name: str) -> tuple[ast.expr, ...]:
    """Return what the loops go through that call a step with all parts of an element; () if it is called otherwise."""
    found: list[ast.expr] = []
    calls: list[ast.AST] = []
    for loop in (node for one in after for node in ast.walk(one) if isinstance(node, ast.For)):
        own = [node for node in ast.walk(loop) if isinstance(node, ast.Call) and _name_of(node.func) == name]
        if any(isinstance(node, ast.For) for one in loop.body for node in ast.walk(one)):
            continue  # over epochs
        calls += [call.func for call in own]
        dataset, target = _unpack(loop)
        parts = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        uses = [node for one in loop.body for node in ast.walk(one) if _name_of(node) in parts]
        given = [arg for call in own for arg in call.args if not call.keywords]
        if own and all(any(use is arg for arg in given) for use in uses) and len(given) == len(uses):
            found.append(dataset)
        elif own:
            return ()
    others = [node for node in ast.walk(source.tree) if _name_of(node) == name and _is_loaded(node)]
    return tuple(found) if all(any(use is call for call in calls) for use in others) else ()


def _unpack(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """Return what a loop goes through, and what takes its elements, without the number of `enumerate`."""
    over, target = loop.iter, loop.target
    is_numbered = isinstance(over, ast.Call) and _name_of(over.func) == "enumerate" and bool(over.args)
    if isinstance(over, ast.Call) and is_numbered and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return over.args[0], target.elts[1]
    return over, target


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_loaded(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _list_names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
