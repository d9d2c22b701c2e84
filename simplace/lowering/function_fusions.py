"""Fuse the functions of maps and filters that follow each other, where a program turns that on.

Mirrors map_fusion.cc, filter_fusion.cc and map_and_filter_fusion.cc of tensorflow/core/grappler/optimizers/data. None
of them fuses a function that captures something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simplace.graph.node_def import ArgDef, FuncRef, FunctionDef, NodeDef, ShapeAttr, TensorInfo
from simplace.lowering.dataset_body import DatasetBody
from simplace.lowering.fusion_utils import (
    FunctionLibrary,
    combine_functions,
    compose_functions,
    join_predicates,
)

_PARALLEL = "ParallelMapDatasetV2"
_FILTER = "FilterDataset"
_TYPES = ("output_types", "output_shapes")
_AUTOTUNE = -1
_Fuse = Callable[[FunctionDef, FunctionDef, str, FunctionLibrary], str]


def fuse_maps(body: DatasetBody, library: FunctionLibrary) -> None:
    """Fuse each map with the map before it."""

    def takes_part(node: NodeDef) -> bool:
        return _is_plain_map(body, node)

    _fuse_pairs(body, library, takes_part, takes_part, _fuse_maps)


def fuse_filters(body: DatasetBody, library: FunctionLibrary) -> None:
    """Fuse each filter with the filter before it."""
    _fuse_pairs(body, library, _is_plain_filter, _is_plain_filter, _fuse_filters)


def fuse_maps_and_filters(body: DatasetBody, library: FunctionLibrary) -> None:
    """Let each map also compute what the filter after it asks, for a filter by the last result and a map without it."""
    _fuse_pairs(body, library, _is_old_map, _is_plain_filter, _fuse_map_and_filter)


def _fuse_pairs(
    body: DatasetBody,
    library: FunctionLibrary,
    comes_first: Callable[[NodeDef], bool],
    comes_second: Callable[[NodeDef], bool],
    fuse: Callable[[DatasetBody, NodeDef, NodeDef, FunctionLibrary], bool],
) -> None:
    removed = []
    for each in body.sort_nodes():
        node = body.nodes[each.name]
        before = body.find_input(node.name) if comes_second(node) else None
        if before is not None and comes_first(before) and fuse(body, before, node, library):
            removed += [before, node]
    body.remove(removed)


def _is_old_map(node: NodeDef) -> bool:
    return (node.op, len(node.inputs)) in (("MapDataset", 1), ("ParallelMapDataset", 2))


def _is_plain_map(body: DatasetBody, node: NodeDef) -> bool:
    if node.attrs.get("use_unbounded_threadpool"):
        return False
    if node.op == _PARALLEL and len(node.inputs) == 2:
        calls = body.find_input(node.name, 1)
        value = calls.attrs.get("value") if calls is not None and calls.op == "Const" else None
        return isinstance(value, TensorInfo) and value.value == _AUTOTUNE
    return node.op == "MapDataset" and len(node.inputs) == 1


def _is_plain_filter(node: NodeDef) -> bool:
    return node.op == _FILTER and len(node.inputs) == 1


def _is_deterministic(node: NodeDef) -> bool:
    return node.attrs.get("deterministic", b"default") in (b"true", b"default")


def _fuse_called(first: FuncRef, second: FuncRef, prefix: str, library: FunctionLibrary, fuse: _Fuse) -> str:
    one, other = library.find(first.name), library.find(second.name)
    return "" if one is None or other is None else fuse(one, other, prefix, library)


def _fuse_maps(body: DatasetBody, first: NodeDef, second: NodeDef, library: FunctionLibrary) -> bool:
    if first.op != second.op or (first.op == _PARALLEL and _is_deterministic(first) != _is_deterministic(second)):
        return False
    prefix = f"map_fusion_funcs/{first.attrs['f'].name}/{second.attrs['f'].name}"
    function = _fuse_called(first.attrs["f"], second.attrs["f"], prefix, library, compose_functions)
    if not function:
        return False
    name = body.make_name(f"map_fusion_nodes/{first.name}/{second.name}")
    attrs = _copy_attrs(first, "Targuments") | _copy_attrs(second, *_TYPES)
    attrs |= {
        "f": replace(first.attrs["f"], name=function),
        "use_inter_op_parallelism": any(node.attrs.get("use_inter_op_parallelism", False) for node in (first, second)),
        "preserve_cardinality": all(node.attrs.get("preserve_cardinality", False) for node in (first, second)),
    }
    if first.op == _PARALLEL:
        attrs |= _copy_attrs(second, "deterministic")
    body.add_fused(name, first.op, first.inputs, attrs, first)
    body.hand_over(second.name, f"{name}:handle:0")
    return True


def _fuse_filters(body: DatasetBody, first: NodeDef, second: NodeDef, library: FunctionLibrary) -> bool:
    called = first.attrs["predicate"], second.attrs["predicate"]
    function = _fuse_called(*called, "fused_predicate", library, join_predicates)
    if not function:
        return False
    name = body.make_name("fused_filter")
    attrs = _copy_attrs(first, "Targuments") | _copy_attrs(second, *_TYPES)
    attrs["predicate"] = replace(first.attrs["predicate"], name=function)
    body.add_fused(name, _FILTER, first.inputs, attrs, first)
    body.hand_over(second.name, f"{name}:handle:0")
    return True


def _fuse_map_and_filter(body: DatasetBody, mapped: NodeDef, filtered: NodeDef, library: FunctionLibrary) -> bool:
    called = mapped.attrs["f"], filtered.attrs["predicate"]
    function = _fuse_called(*called, "fused_map_and_filter_function", library, combine_functions)
    if not function:
        return False
    results = library.added[function].outputs
    types = tuple(arg.dtype for arg in results)
    shapes = (*mapped.attrs.get("output_shapes", ()), ShapeAttr(()))

    name = body.make_name("fused_map")
    attrs = _copy_attrs(
        mapped, "Targuments", "use_inter_op_parallelism", "sloppy", "preserve_cardinality"
    ) | {"f": replace(mapped.attrs["f"], name=function), "output_types": types, "output_shapes": shapes}  # fmt: skip
    body.add_fused(name, mapped.op, mapped.inputs, attrs, mapped)

    last = body.make_name("FilterByLast")
    attrs = {
        "predicate": FuncRef(_add_choice(library, "GetLast", results, {"predicate_result": results[-1]})),
        "Targuments": (), "output_types": types, "output_shapes": shapes,
    }  # fmt: skip
    body.add_fused(last, _FILTER, (f"{name}:handle:0",), attrs, filtered)

    rest = body.make_name("DropLast")
    attrs = _copy_attrs(mapped, *_TYPES, "use_inter_op_parallelism", "preserve_cardinality") | {
        "f": FuncRef(_add_choice(library, "DropLast", results, {arg.name: arg for arg in results[:-1]})),
        "Targuments": (),
    }
    body.add_fused(rest, "MapDataset", (f"{last}:handle:0",), attrs, mapped)
    body.hand_over(filtered.name, f"{rest}:handle:0")
    return True


def _add_choice(library: FunctionLibrary, name: str, inputs: tuple[ArgDef, ...], returned: dict[str, ArgDef]) -> str:
    """Add a function that returns some of its arguments; TensorFlow makes no new name for it."""
    made = FunctionDef(
        name=name,
        inputs=inputs,
        outputs=tuple(ArgDef(result, arg.dtype) for result, arg in returned.items()),
        nodes=(),
        ret={result: f"{arg.name}:0" for result, arg in returned.items()},
        control_ret={},
        control_outputs=(),
        attrs={},
        arg_attrs={},
    )
    library.size += 1
    library.add(made, {})
    return name


def _copy_attrs(node: NodeDef, *names: str) -> dict[str, object]:
    return {name: node.attrs[name] for name in names if name in node.attrs}
