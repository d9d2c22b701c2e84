"""Find the Keras models that `tf.distribute.MirroredStrategy` could copy to all GPUs, where a step uses one of them."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from simplace.analysis.batch_growth import ELEMENTS
from simplace.analysis.schedule import Schedule
from simplace.costs.cost_model import OpCall
from simplace.costs.op_work import make_tensor
from simplace.graph.op_kinds import IDENTITIES, is_arg
from simplace.partition.transfers import Copy
from simplace.suggestions.changes import MirroredReplicas
from simplace.suggestions.edits import Insertion, Wrapping
from simplace.suggestions.estimated_step import count_step_examples
from simplace.suggestions.evidence import Evidence, Line, resolve_line
from simplace.suggestions.scope_changes import tensorflow_name
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.xla_changes import compiles_model

_STRATEGIES = "distribute"  # the module of strategies: a program that names it has chosen one
_NAME = "tf"  # of TensorFlow in a file that does not import it yet
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find_mirroring(evidence: Evidence) -> Iterator[MirroredReplicas]:
    """Find the statements that make and compile the model of a step of Keras that computes on one GPU of several.

    Keras trains a model by the strategy in whose scope it is made; its optimizer has to be made there, too.
    """
    replicas, is_of_keras = len(evidence.gpus), bool(evidence.placed.placement.program.role)
    if not is_of_keras or replicas < 2 or len(list_busy_gpus(evidence.schedule)) != 1:
        return
    if names_strategy(evidence):
        return
    examples, copied = count_step_examples(evidence.schedule), time_elements(evidence, replicas)
    lines = {resolve_line(fact.at) for fact in evidence.result.python if fact.kind == "layer made"}
    models = ModelMakers(evidence.files, lines)
    for source in evidence.files:
        name, imports = _name_tensorflow(source)
        for first, last in models.list_ranges(source) if name else ():
            header = f"with {name}.distribute.MirroredStrategy().scope():"
            wrapping = Wrapping(source.name, first.lineno, last.end_lineno or last.lineno, header)
            yield MirroredReplicas(
                edits=(*imports, wrapping),
                at=f"{source.name}:{first.lineno}",
                replicas=replicas,
                examples=examples,
                copied=copied,
            )


def names_strategy(evidence: Evidence) -> bool:
    """Return whether a file of the program names the module of strategies, and so has chosen one, or none."""
    return any(_STRATEGIES in source.text for source in evidence.files)


def list_busy_gpus(schedule: Schedule) -> list[str]:
    """List the GPUs that compute something in a step, by their full names."""
    devices = schedule.placed.devices.by_name
    return [one.device for one in schedule.device_times if devices[one.device].type == "GPU" and not one.is_idle]


def _name_tensorflow(source: SourceFile) -> tuple[str, tuple[Insertion, ...]]:
    """Return what a file calls TensorFlow, and what imports it where the file has Keras alone; "" for neither."""
    if name := tensorflow_name(source):
        return name, ()
    used = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    for node in source.tree.body if _NAME not in used else ():
        modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        if any(module.split(".")[0] == "keras" for module in modules):
            return _NAME, (Insertion(source.name, node.end_lineno or node.lineno, f"import tensorflow as {_NAME}"),)
    return "", ()


def time_elements(evidence: Evidence, replicas: int) -> int:
    """Return the nanoseconds that the elements of the next step take beside a step.

    Each is copied into a batch in host memory at least once, on all cores; then the parts go to all GPUs at once.
    """
    estimated = evidence.schedule.estimated
    given = [i for i, copy in enumerate(estimated.graph.copies) if _is_of_element(evidence, copy)]
    moved = make_tensor("uint8", (sum(estimated.copy_bytes[i] for i in given),), 1)
    made = estimated.model.kernel(OpCall("", "Pack", "CPU", {}, (moved,), (moved,))).host_s
    sent = sum(estimated.copy_seconds[i] for i in given)
    return int(1e9 * max(made / evidence.schedule.threads.cores, sent / replicas)) if given else 0


def _is_of_element(evidence: Evidence, copy: Copy) -> bool:
    """Return whether a copy takes a part of a dataset's element to a GPU: in a loop of one's own, an argument."""
    graph = evidence.placed.placement.graph
    node = evidence.schedule.estimated.graph.rewritten.origin[copy.producer]
    while node >= 0 and graph.ops[node] in IDENTITIES:
        node = next((graph.edge_src[edge] for edge in graph.data_in_edges(node)), -1)
    if node < 0 or copy.is_control or "GPU" not in copy.target:
        return False
    is_of_keras = bool(evidence.placed.placement.program.role)
    return graph.ops[node] in ELEMENTS or (not is_of_keras and is_arg(graph.ops[node]))


class ModelMakers:
    """The statements of some files that make models of Keras; `lines` are those that made layers."""

    def __init__(self, files: Sequence[SourceFile], lines: Container[Line]) -> None:
        self._lines = lines
        self._names: set[str] = set()  # of functions and classes that make layers
        defined = [(file, node) for file in files for node in ast.walk(file.tree) if isinstance(node, _DEFINITIONS)]
        while found := {node.name for file, node in defined if self._makes_layers(file, node)} - self._names:
            self._names |= found

    def list_ranges(self, source: SourceFile) -> Iterator[tuple[ast.stmt, ast.stmt]]:
        """List of each block that compiles a model the first statement that makes a part of one, and the last."""
        for block in _list_blocks(source.tree):
            compiling = [one for one in block if _compiles(source, one)]
            names = {node.id for one in compiling for node in ast.walk(one) if isinstance(node, ast.Name)}
            before = block[: block.index(compiling[-1])] if compiling else []
            making = [one for one in before if self._makes(source, one, names)]
            if making:
                yield making[0], compiling[-1]

    def _makes(self, source: SourceFile, statement: ast.stmt, names: set[str]) -> bool:
        """Return whether a statement makes a layer, or gives one of some names to what a call returns."""
        if isinstance(statement, _DEFINITIONS):
            return False
        is_named = isinstance(statement, ast.Assign) and any(
            isinstance(node, ast.Name) and node.id in names for node in statement.targets
        )
        calls = any(isinstance(node, ast.Call) for node in ast.walk(statement))
        return (is_named and calls) or self._makes_layers(source, statement)

    def _makes_layers(self, source: SourceFile, statement: ast.stmt) -> bool:
        """Return whether a call within a statement made a layer, or a function or class that it names does."""
        own = getattr(statement, "name", "")
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and any((source.path, line) in self._lines for line in _list_lines(node)):
                return True
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else own
            if name != own and name in self._names:
                return True
        return False


def _list_blocks(tree: ast.Module) -> Iterator[Sequence[ast.stmt]]:
    """List the bodies of the module, of functions, and of the statements in these."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and not isinstance(node, ast.ClassDef):
                yield block


def _compiles(source: SourceFile, statement: ast.stmt) -> bool:
    """Return whether a statement does nothing but compile a model."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and compiles_model(source, statement.value)
    )


def _list_lines(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
