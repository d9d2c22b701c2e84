"""What TensorFlow fuses or leaves out where a function that datasets call makes datasets itself.

Mirrors the optimizations of tf.data that also apply to functions, in the order of
tensorflow/core/grappler/optimizers/data/meta_optimizer.cc: noop_elimination.cc, shuffle_and_repeat_fusion.cc, what
function_fusions.py has, map_and_batch_fusion.cc and make_deterministic.cc. The others (parallelization, prefetching,
autotuning) leave functions as they are.

A shuffle and a repeat that have been fused stay beside the new node: no dataset in a function may be pruned
(`GrapplerFunctionItem` of grappler/utils/functions.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import FuncRef, FunctionDef, NodeDef, TensorInfo
from simplace.kernels.registry import KernelTable
from simplace.lowering.dataset_body import DatasetBody, list_data
from simplace.lowering.function_fusions import fuse_filters, fuse_maps, fuse_maps_and_filters
from simplace.lowering.fusion_utils import OF_DATASETS, FunctionLibrary
from simplace.lowering.make_deterministic import make_deterministic
from simplace.lowering.mutable_graph_view import drop_repeated_controls
from simplace.lowering.reachable_functions import select_reached
from simplace.lowering.topological_sort import sort_nodes

NOOP_ELIMINATION = "noop_elimination"
SHUFFLE_AND_REPEAT_FUSION = "shuffle_and_repeat_fusion"
MAP_AND_BATCH_FUSION = "map_and_batch_fusion"
MAP_FUSION = "map_fusion"
FILTER_FUSION = "filter_fusion"
MAP_AND_FILTER_FUSION = "map_and_filter_fusion"
MAKE_DETERMINISTIC = "make_deterministic"
# The options of a dataset switch optimizers; a program that asks for determinism turns the last of them on.
ON_BY_DEFAULT = (NOOP_ELIMINATION, SHUFFLE_AND_REPEAT_FUSION, MAP_AND_BATCH_FUSION)
OFF_BY_DEFAULT = (MAP_FUSION, FILTER_FUSION, MAP_AND_FILTER_FUSION, MAKE_DETERMINISTIC)
# What the names of the datasets begin with that the others make.
_MADE_BY_OTHERS = {
    "map_fusion_nodes/": MAP_FUSION,
    "fused_filter": FILTER_FUSION,
    "FilterByLast": MAP_AND_FILTER_FUSION,
    "make_deterministic_": MAKE_DETERMINISTIC,
}
SORTING = (MAP_FUSION, FILTER_FUSION, MAP_AND_FILTER_FUSION)  # those that sort the nodes of a function
_PARALLEL_MAPS = ("ParallelMapDataset", "ParallelMapDatasetV2")
_MAPS = ("MapDataset", *_PARALLEL_MAPS)
_BATCHES = ("BatchDataset", "BatchDatasetV2")
_SHUFFLES = ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
# Ops whose dataset is the one that they are given, where their second input is such an integer.
_NO_OPS: Mapping[str, Callable[[int], bool]] = {
    "TakeDataset": lambda count: count < 0,
    "SkipDataset": lambda count: count == 0,
    "RepeatDataset": lambda count: count == 1,
    "ShardDataset": lambda shards: shards == 1,
}
_TYPES = ("output_types", "output_shapes")


@dataclass(frozen=True, slots=True)
class OptimizedDatasets:
    """Record of a function whose datasets are optimized, of which node each fused one is made first, and of others.

    `added` are the functions that optimizers made, and `origins` of which function's node each of their nodes is made.
    """

    function: FunctionDef
    made_of: Mapping[str, str]
    added: Mapping[str, FunctionDef]
    origins: Mapping[str, Mapping[str, tuple[str, str]]]


def fuse_datasets(
    function: FunctionDef, library: Mapping[str, FunctionDef], table: KernelTable, switched: Sequence[str] = ()
) -> OptimizedDatasets:
    """Return a function as TensorFlow optimizes it, if datasets call it.

    `library` has what the function calls; optimizers that are switched do something that they do not do by default, or
    nothing. Where something else takes the elements of a map that would be fused, TensorFlow refuses the dataset
    (`DeleteNodes` of grappler/mutable_graph_view.cc), and the function stays as it is.
    """
    if not function.attrs.get(OF_DATASETS):
        return OptimizedDatasets(function, {}, {}, {})
    function = drop_repeated_controls(function)
    if any(each in switched for each in SORTING):
        sorted_nodes = sort_nodes((arg.name for arg in function.inputs), function.nodes)
        function = replace(function, nodes=tuple(sorted_nodes))
    unchanged = OptimizedDatasets(function, {}, {}, {})
    if not any(makes_dataset(node.op) for node in function.nodes):
        return unchanged
    body = DatasetBody(function)
    functions = FunctionLibrary(dict(library), len(select_reached(function, library)) - 1)
    _optimize(body, functions, table, switched)
    if body.lacks_nodes():
        return unchanged
    made = replace(function, nodes=tuple(body.nodes.values()), ret=body.ret)
    return OptimizedDatasets(made, body.made_of, functions.added, functions.made_of)


def _optimize(body: DatasetBody, functions: FunctionLibrary, table: KernelTable, switched: Sequence[str]) -> None:
    if NOOP_ELIMINATION not in switched:
        nodes = list(body.nodes.values())
        body.remove([node for node in nodes if _leave_out(body, node.name, functions.functions)])
    if SHUFFLE_AND_REPEAT_FUSION not in switched:
        for node in [node for node in body.nodes.values() if node.op == "RepeatDataset"]:
            _fuse_shuffle(body, node.name)
    if MAP_FUSION in switched:
        fuse_maps(body, functions)
    if FILTER_FUSION in switched:
        fuse_filters(body, functions)
    if MAP_AND_FILTER_FUSION in switched:
        fuse_maps_and_filters(body, functions)
    if MAP_AND_BATCH_FUSION not in switched:
        batches = [node for node in body.nodes.values() if node.op in _BATCHES]
        body.remove([each for node in batches for each in _fuse_map(body, node.name)])
    if MAKE_DETERMINISTIC in switched:
        make_deterministic(body, functions, table)


def makes_dataset(op: str) -> bool:
    """Return whether nodes of an op make datasets."""
    return "Dataset" in op


def is_map(op: str) -> bool:
    """Return whether a dataset of this op is left out where its function hands on the elements."""
    return op in _MAPS


def hands_on_arguments(function: FunctionDef) -> bool:
    """Return whether a function does nothing, and returns its arguments in their order."""
    if function.is_stateful:
        return False
    if len(function.inputs) != len(function.outputs):
        return False
    nodes = {each.name: each for each in function.nodes}

    def find_source(ref: str) -> str:
        while (made := nodes.get(_name_of(ref))) is not None and made.op == "Identity":
            ref = made.inputs[0]
        return _name_of(ref)

    returned = [find_source(function.ret[result.name]) for result in function.outputs]
    return returned == [arg.name for arg in function.inputs]


def find_optimizers(names: Iterable[str]) -> tuple[str, ...]:
    """Return the optimizers, off by default, that made some of a function's datasets, by their names.

    >>> find_optimizers(["RangeDataset", "fused_filter/_4"])
    ('filter_fusion',)
    """
    made = list(names)
    return tuple(key for start, key in _MADE_BY_OTHERS.items() if any(name.startswith(start) for name in made))


def _leave_out(body: DatasetBody, name: str, library: Mapping[str, FunctionDef]) -> bool:
    """Let what takes a dataset that only hands on another one take that; return whether it does."""
    node = body.nodes[name]
    is_no_op = node.op in _MAPS and _hands_on(node, library)
    if node.op in _NO_OPS:
        made = body.find_input(name, 1)
        value = made.attrs.get("value") if made is not None and made.op == "Const" else None
        is_no_op = isinstance(value, TensorInfo) and value.value is not None and _NO_OPS[node.op](value.value)
    if is_no_op:
        body.hand_over(name, node.inputs[0])
    return is_no_op


def _hands_on(node: NodeDef, library: Mapping[str, FunctionDef]) -> bool:
    """Return whether a map captures nothing, and its function hands on its arguments."""
    called = node.attrs.get("f")
    function = library.get(called.name) if isinstance(called, FuncRef) else None
    return function is not None and not node.attrs.get("Targuments") and hands_on_arguments(function)


def _fuse_shuffle(body: DatasetBody, name: str) -> None:
    """Fuse a repeat with the shuffle before it."""
    shuffle, repeat = body.find_input(name), body.nodes[name]
    if shuffle is None or shuffle.op not in _SHUFFLES:
        return
    fused = body.make_name("ShuffleAndRepeatDataset")
    dataset, buffer, *seeds = list_data(shuffle)
    if shuffle.op == "ShuffleDatasetV2":
        seeds = [*2 * [body.add_constant(DataType.DT_INT64, 0)], *seeds]
    attrs = {key: shuffle.attrs[key] for key in _TYPES if key in shuffle.attrs}
    attrs["reshuffle_each_iteration"] = shuffle.attrs.get("reshuffle_each_iteration", True)
    op = "ShuffleAndRepeatDataset" if shuffle.op == "ShuffleDataset" else "ShuffleAndRepeatDatasetV2"
    body.add_fused(fused, op, (dataset, buffer, *seeds[:2], repeat.inputs[1], *seeds[2:]), attrs, shuffle)
    body.hand_over(name, f"{fused}:handle:0")
    body.hand_over(shuffle.name, f"{fused}:handle:0")


def _fuse_map(body: DatasetBody, name: str) -> list[NodeDef]:
    """Fuse a batch with the map before it; return the nodes that were fused."""
    mapped, batch = body.find_input(name), body.nodes[name]
    if mapped is None or mapped.op not in _MAPS or mapped.attrs.get("use_unbounded_threadpool"):
        return []
    fused = body.make_name("MapAndBatchDataset")
    data, (_, *size) = list_data(mapped), list_data(batch)
    calls = data.pop() if mapped.op in _PARALLEL_MAPS else ""
    if mapped.op != "ParallelMapDatasetV2":  # whose number is of another type, or which has none
        calls = body.add_constant(DataType.DT_INT64, 1)
    if batch.op == "BatchDataset":
        size.append(body.add_constant(DataType.DT_BOOL, 0))
    attrs = {key: mapped.attrs[key] for key in ("f", "Targuments", "preserve_cardinality") if key in mapped.attrs}
    attrs |= {key: batch.attrs[key] for key in _TYPES if key in batch.attrs}
    body.add_fused(fused, "MapAndBatchDataset", (*data, size[0], calls, size[1]), attrs, mapped)
    body.hand_over(name, f"{fused}:handle:0")
    return [mapped, batch]


def _name_of(ref: str) -> str:
    return ref.removeprefix("^").partition(":")[0]
