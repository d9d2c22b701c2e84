"""Read a training loop of one's own from a file: the step, what it uses and where that is made, and its loops.

It is of the shape of Keras's and TensorFlow's guides: a model, an optimizer of Keras, a `tf.function` that computes the
loss, its gradients and the update, and loops over datasets that call it with the parts of an element. All of it may
stand at the top of a file or in a function; the step may be a method of what holds the model. Anything else is left
alone, since nobody could tell whether each replica's part of the loss were still what it should be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simplace.suggestions.source_file import SourceFile

_LOSS = re.compile(r"(^|\.)losses\.[A-Z]\w*$")
_LAYER = re.compile(r"(^|\.)(layers\.[A-Z]\w*|Input)$")
_OPTIMIZER = re.compile(r"(^|\.)optimizers\.[A-Z]\w*$")
_BLOCKS = ("body", "orelse", "finalbody")
_MEAN = "reduce_mean"


@dataclass(frozen=True)
class TrainingLoop:
    """Record of a training step and its loops: the decorator of the step, the datasets that are gone through.

    `making` are the statements from the first that makes what the step uses to the last one. `optimizer` and
    `variables` are as the step names them. `loss` is its name, and `mean` the statement that takes the loss's mean over
    the examples, None where a loss of Keras does.
    """

    decorator: ast.expr
    making: tuple[ast.stmt, ...]
    datasets: tuple[ast.expr, ...]
    optimizer: str
    variables: ast.expr
    loss: str
    mean: ast.stmt | None


def read_loop(source: SourceFile, name: str) -> TrainingLoop | None:
    """Read the training step of a name and its loops; None for another shape."""
    steps = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    if len(steps) != 1 or len(steps[0].decorator_list) != 1:
        return None
    reader = _StepReader(source, steps[0])
    update = reader.read_update() if _is_function(steps[0].decorator_list[0]) and reader.takes_parts() else None
    if update is None:
        return None
    making, datasets = reader.find_making(update), reader.find_datasets()
    if not making or not datasets:
        return None
    mean = update.given if update.is_mean else None
    return TrainingLoop(
        steps[0].decorator_list[0], making, datasets, update.optimizer, update.variables, update.loss, mean
    )


@dataclass(frozen=True, slots=True)
class _Update:
    """Record of what a training step does, by name: its loss, what makes that, the optimizer; and the variables.

    `given` is the statement that makes the loss; `is_mean` tells that it takes the mean of the losses of the examples.
    """

    loss: str
    given: ast.Assign
    maker: str
    is_mean: bool
    optimizer: str
    variables: ast.expr


class _StepReader:
    """A training step in its file; `own` is what a method calls its object, "" for a function."""

    def __init__(self, source: SourceFile, step: ast.FunctionDef) -> None:
        self._source = source
        self._step = step
        self._around = _list_around(source.tree, step)
        is_method = isinstance(self._around[0][0], ast.ClassDef) and bool(step.args.args)
        self._own = step.args.args[0].arg if is_method else ""

    def takes_parts(self) -> bool:
        """Return whether the step takes nothing but parts of an element."""
        given = self._step.args
        parts = len(given.args) - bool(self._own)
        return parts > 0 and not (given.vararg or given.kwonlyargs or given.kwarg or given.defaults)

    def read_update(self) -> _Update | None:
        """Read a step that computes one loss by one call, its gradients and the update, and returns no more than that.

        The optimizers of Keras add up the gradients of all replicas, and what is returned is added up, too.
        """
        step = self._step
        gradients, updates = (_find_methods(step, name) for name in ("gradient", "apply_gradients"))
        if len(gradients) != 1 or len(updates) != 1 or len(gradients[0].args) != 2:
            return None
        assert isinstance(updates[0].func, ast.Attribute), "a method"
        loss, variables = gradients[0].args
        name, optimizer = _name_of(loss), self._name(updates[0].func.value)
        stored = [node for node in ast.walk(step) if _name_of(node) == name and not _is_read(node)]
        given = [one for one in ast.walk(step) if isinstance(one, ast.Assign) and _name_of(one.targets[0]) == name]
        returned = [node.value for node in ast.walk(step) if isinstance(node, ast.Return)]
        is_loss = all(one is None or _name_of(one) == name for one in returned) and len(returned) < 2
        is_of_model = isinstance(variables, ast.Attribute) and bool(self._name(variables.value))
        if not name or not optimizer or not is_loss or len(stored) != 1 or len(given) != 1 or not is_of_model:
            return None
        made_by = given[0].value
        if not isinstance(made_by, ast.Call):
            return None
        return _Update(name, given[0], self._name(made_by.func), self._is_mean(made_by), optimizer, variables)

    def find_making(self, update: _Update) -> tuple[ast.stmt, ...]:
        """Return the statements that make what the step uses, from the first to the last; () for another kind."""
        used = {self._name(node) for node in ast.walk(self._step) if _is_read(node)}
        for before in self._list_before():
            made = {
                self._name(target): (i, self._source.segment(one.value.func))
                for i, one in enumerate(before)
                if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
                for target in one.targets
                if self._name(target) in used - {""}
            }
            loss, loss_maker = made.get(update.maker, (0, ""))
            is_mean = update.is_mean or (bool(_LOSS.search(loss_maker)) and not _reduces(before[loss]))
            if _OPTIMIZER.search(made.get(update.optimizer, (0, ""))[1]) and is_mean:
                touched = [i for i, one in enumerate(before) if made.keys() & self._list_names(one) and _runs(one)]
                touched += self._list_layers(before, {i for i, _ in made.values()})
                return tuple(before[self._find_first(before, update, touched) : max(touched) + 1])
        return ()

    def find_datasets(self) -> tuple[ast.expr, ...]:
        """Return what the loops go through that call the step with all parts of an element; () if others call it."""
        found: list[ast.expr] = []
        calls: list[ast.AST] = []
        for loop in (node for node in ast.walk(self._source.tree) if isinstance(node, ast.For)):
            own = self._list_calls(loop)
            if own and not _takes_parts(loop, own):
                return ()
            calls += [call.func for call in own]
            found += [_unpack(loop)[0]] if own else []
        others = [node for node in ast.walk(self._source.tree) if self._is_step(node) and _is_read(node)]
        return tuple(found) if all(any(use is call for call in calls) for use in others) else ()

    def _list_calls(self, loop: ast.For) -> list[ast.Call]:
        """List the calls of the step in a loop, but for those in a loop within it: epochs repeat that one."""
        inner = {node for one in _walk_body(loop) if isinstance(one, ast.For) for node in ast.walk(one)}
        calls = (node for node in _walk_body(loop) if isinstance(node, ast.Call))
        return [call for call in calls if self._is_step(call.func) and call not in inner]

    def _list_before(self) -> Iterator[Sequence[ast.stmt]]:
        """List what runs before the step, block by block outwards: of a method, how its object is made."""
        parent, _ = self._around[0]
        if not self._own:
            yield from (before for _, before in self._around)
            return
        assert isinstance(parent, ast.ClassDef), "a method"
        for one in parent.body:
            if isinstance(one, ast.FunctionDef) and one.name == "__init__" and one.args.args[0].arg == self._own:
                yield one.body

    def _find_first(self, before: Sequence[ast.stmt], update: _Update, touched: Sequence[int]) -> int:
        """Return the first statement to take in: where the object is the model itself, all that makes its variables."""
        assert isinstance(update.variables, ast.Attribute), "of a model"
        if self._name(update.variables.value) != self._own or not self._own:
            return min(touched)
        return next(i for i, one in enumerate(before) if not isinstance(one, ast.Expr))

    def _list_layers(self, before: Sequence[ast.stmt], makers: set[int]) -> set[int]:
        """Number the statements that make layers, and call them, which what some statements make consists of."""
        calling = {i: one for i, one in enumerate(before) if isinstance(one, ast.Assign) and self._calls_layer(one)}
        found, names = set[int](), {name for i in makers for name in self._list_names(before[i])}
        while new := {i for i, one in calling.items() if set(map(self._name, one.targets)) & names} - found:
            found |= new
            names |= {name for i in new for name in self._list_names(before[i])}
        return found

    def _calls_layer(self, statement: ast.Assign) -> bool:
        """Return whether a statement makes a layer of Keras or an input, or calls what a call makes, as a layer."""
        calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return any(isinstance(func, ast.Call) or _LAYER.search(self._source.segment(func)) for func in calls)

    def _is_step(self, node: ast.AST) -> bool:
        """Return whether an expression is the step: its name, or an attribute of it."""
        if self._own:
            return isinstance(node, ast.Attribute) and node.attr == self._step.name
        return _name_of(node) == self._step.name

    def _is_mean(self, call: ast.Call) -> bool:
        """Return whether a call takes the mean of all that it is given, by itself or by what a function returns."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == _MEAN:
            return len(call.args) == 1 and not call.keywords
        named = [
            one for one in ast.walk(self._source.tree)
            if isinstance(one, ast.FunctionDef) and one.name == _name_of(call.func) and not one.decorator_list
        ]  # fmt: skip
        returned = [node.value for one in named for node in ast.walk(one) if isinstance(node, ast.Return)]
        value = returned[0] if len(named) == len(returned) == 1 else None
        return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and self._is_mean(value)

    def _name(self, node: ast.AST) -> str:
        """Return a name, or that of an attribute of the method's object, such as `self.model`; "" for the rest."""
        if isinstance(node, ast.Attribute) and self._own and _name_of(node.value) == self._own:
            return f"{self._own}.{node.attr}"
        return _name_of(node)

    def _list_names(self, statement: ast.stmt) -> set[str]:
        return {self._name(node) for node in ast.walk(statement)} - {""}


def _list_around(tree: ast.AST, step: ast.FunctionDef) -> list[tuple[ast.AST, Sequence[ast.stmt]]]:
    """List what holds a step, outwards, each with the statements before the one that the step is in."""
    for block in (getattr(tree, field, ()) for field in _BLOCKS):
        statements: list[ast.stmt] = block if isinstance(block, list) else []
        for i, one in enumerate(statements):
            if one is step:
                return [(tree, statements[:i])]
            if found := _list_around(one, step):
                return [*found, (tree, statements[:i])]
    return []


def _is_function(decorator: ast.expr) -> bool:
    """Return whether a decorator is `tf.function`, without arguments, which could say what the parts are."""
    return isinstance(decorator, ast.Attribute) and decorator.attr == "function"


def _runs(statement: ast.stmt) -> bool:
    """Return whether a statement does something at its place: the variables of a model may be made there."""
    return not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _reduces(statement: ast.stmt) -> bool:
    """Return whether a call says how a loss is reduced: only the mean is divided by the number of replicas."""
    keywords = (node.arg for node in ast.walk(statement) if isinstance(node, ast.keyword))
    return any(name in ("reduction", None) for name in keywords)


def _find_methods(step: ast.FunctionDef, name: str) -> list[ast.Call]:
    """Find the calls of a method."""
    calls = (node for node in ast.walk(step) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == name]


def _unpack(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """Return what a loop goes through, and what takes its elements, without the number of `enumerate`."""
    over, target = loop.iter, loop.target
    is_numbered = isinstance(over, ast.Call) and _name_of(over.func) == "enumerate" and bool(over.args)
    if isinstance(over, ast.Call) and is_numbered and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return over.args[0], target.elts[1]
    return over, target


def _walk_body(loop: ast.For) -> Iterator[ast.AST]:
    return (node for one in loop.body for node in ast.walk(one))


def _takes_parts(loop: ast.For, calls: Sequence[ast.Call]) -> bool:
    """Return whether calls take all parts of a loop's element, and nothing but these, which nothing else uses."""
    _, target = _unpack(loop)
    parts = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    uses = [node for node in _walk_body(loop) if _name_of(node) in parts]
    given = [arg for call in calls for arg in call.args if not call.keywords]
    return len(given) == len(uses) and all(any(use is arg for arg in given) for use in uses)


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_read(node: ast.AST) -> bool:
    """Return whether a name, or an attribute, is read."""
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
