"""Find the data types that have no kernel on a GPU, or a slow one, and that another could stand in for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import DATAFLOW_ONLY
from simplace.suggestions.changes import MixedPrecision, OtherType
from simplace.suggestions.edits import Insertion, Replacement, add_argument, replace_node
from simplace.suggestions.evidence import Evidence, resolve_line
from simplace.suggestions.scope_changes import tensorflow_name
from simplace.suggestions.source_file import SourceFile

_INSTEAD = {"float64": "float32", "double": "float32", "int32": "float32", "int64": "float32"}
_MODULES = ("tf", "tensorflow", "np", "numpy", "dtypes")
_DOUBLE = "float64"
_MAKERS = ("constant", "convert_to_tensor", "Variable")  # of TensorFlow: they take the type of the array they are given
_PRODUCTS = frozenset({"MatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Conv3D", "Einsum", "_FusedMatMul"})


def find_type_changes(evidence: Evidence) -> Iterator[OtherType]:
    """Find the data types to replace at all places of a file: float64 on a GPU, integers that a GPU cannot compute.

    An array of NumPy's is float64 unless the program says otherwise; no place of the file may name that.
    """
    used = _types_in_the_way(evidence)
    for source in evidence.files:
        for before, after in _INSTEAD.items():
            if before not in used:
                continue
            found = [_replace_type(source, node, after) for node in ast.walk(source.tree) if _names_type(node, before)]
            found += _write_types(evidence, source, after) if before == _DOUBLE else ()
            if found:
                at = f"{source.name}:{min(edit.line for edit in found)}"
                yield OtherType(edits=tuple(found), at=at, before=before, after=after, places=len(found))


def find_mixed_precision(evidence: Evidence) -> Iterator[MixedPrecision]:
    """Propose mixed precision where Keras's layers multiply in float32 on a GPU, or XLA does so for them."""
    if not _multiplies_on_gpu(evidence):
        return
    for source in evidence.files:
        module = source.find_module("keras") or source.find_module("tensorflow.keras")
        tensorflow = source.find_module("tensorflow")
        if not module and tensorflow and f"{tensorflow}.keras" in source.text:
            module = f"{tensorflow}.keras"
        statement = source.find_import(module)
        if statement is not None and "mixed_precision" not in source.text:
            line = statement.end_lineno or statement.lineno
            edit = Insertion(source.name, line, f'{module}.mixed_precision.set_global_policy("mixed_float16")')
            yield MixedPrecision(edits=(edit,), at=f"{source.name}:{line}")
            return


def _multiplies_on_gpu(evidence: Evidence) -> bool:
    """Return whether there are products of float32 on a GPU; of which type they are in a cluster is not known."""
    placement = evidence.placed.placement
    graph, float32 = placement.graph, int(DataType.DT_FLOAT)
    products = (node for node in placement.decisions if graph.ops[node] in _PRODUCTS)
    compiled = (op.op for one in evidence.placed.clusters if one.device_type == "GPU" for op in one.ops)
    placed = any("GPU" in placement.device(node) and graph.out_types[node][0] == float32 for node in products)
    return placed or any(op in _PRODUCTS for op in compiled)


def _types_in_the_way(evidence: Evidence) -> set[str]:
    """Name the types of ops that a GPU computes slowly, or not at all although it computes floats."""
    placement, found = evidence.placed.placement, set()
    for node in placement.decisions:
        graph = placement.graph
        if graph.ops[node] in DATAFLOW_ONLY or not graph.in_types[node]:
            continue
        types = {graph.in_types[node][0] % 100, *(number % 100 for number in graph.out_types[node][:1])}
        if "GPU" in placement.device(node):
            found |= {"float64", "double"} if int(DataType.DT_DOUBLE) in types else set()
        else:
            found |= {"int32"} if int(DataType.DT_INT32) in types else set()
            found |= {"int64"} if int(DataType.DT_INT64) in types else set()
    return found


def _write_types(evidence: Evidence, source: SourceFile, after: str) -> Iterator[Replacement]:
    """Write a type where a tensor or a variable is float64 because NumPy computes in that."""
    module, double = tensorflow_name(source), int(DataType.DT_DOUBLE)
    eager = evidence.result.eager
    ran = [one.placement.op for one in eager.ops] if eager is not None else []
    lines = {resolve_line(op.at) for op in ran if op.at and double in op.attrs.values()}
    for call in source.calls:
        func = call.func
        is_maker = isinstance(func, ast.Attribute) and func.attr in _MAKERS and source.segment(func.value) == module
        is_typed = len(call.args) != 1 or any(keyword.arg in ("dtype", None) for keyword in call.keywords)
        own = range(call.lineno, (call.end_lineno or call.lineno) + 1)
        if is_maker and not is_typed and any((source.path, line) in lines for line in own):
            edit = add_argument(source, call, f"dtype={module}.{after}")
            yield from () if edit is None else (edit,)


def _names_type(node: ast.AST, name: str) -> bool:
    """Return whether an expression is `tf.float64`, `np.float64` or the string "float64"."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.value, ast.Name) and node.value.id in _MODULES
    return isinstance(node, ast.Constant) and node.value == name


def _replace_type(source: SourceFile, node: ast.AST, after: str) -> Replacement:
    assert isinstance(node, ast.expr)
    if isinstance(node, ast.Attribute):
        return replace_node(source, node, f"{source.segment(node.value)}.{after}")
    return replace_node(source, node, f'"{after}"')
