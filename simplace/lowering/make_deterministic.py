"""What TensorFlow runs in order where ops must be deterministic: the datasets that a function makes.

Mirrors tensorflow/core/grappler/optimizers/data/make_deterministic.cc. A map that runs its function several times at
once does so no more for the stateful ops of the function, or not at all; where a function could see what other ops do
meanwhile, nothing runs ahead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from simplace.graph.algorithm import reverse_reachable
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue, FuncRef, FunctionDef, NodeDef
from simplace.kernels.registry import KernelTable
from simplace.lowering.dataset_body import DatasetBody, list_data
from simplace.lowering.fusion_utils import FunctionLibrary
from simplace.lowering.op_signatures import Signatures
from simplace.lowering.split_utils import CannotSplitError, split_function

_IN_PARALLEL = (
    "TextLineDataset", "FixedLengthRecordDataset", "TFRecordDataset", "TensorSliceDataset", "RangeDataset",
    "SSTableDataset", "RecordIODataset", "Print", "Assert",
)  # fmt: skip
_ASYNCHRONOUS = (
    *_IN_PARALLEL,
    "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "ParameterizedTruncatedNormal", "TruncatedNormal",
    "RandomShuffle", "Multinomial", "RandomGamma", "RandomGammaGrad", "RandomPoisson", "RandomCrop",
    "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2",
)  # fmt: skip
_VERSION = re.compile(r"V\d*$")
_CALLS = frozenset({"StatefulPartitionedCall", "If", "StatelessIf", "While", "StatelessWhile"})
_SPLIT = frozenset({"ParallelMapDatasetV2", "MapAndBatchDataset"})
_DATASET = re.compile(r"Dataset(V\d+)?$")


def make_deterministic(body: DatasetBody, library: FunctionLibrary, table: KernelTable) -> None:
    """Change the datasets of a function that would not always give the same elements."""
    asks = _Determinism(library, table)
    reached = [each.nodes for each in asks.list_reached(body)]
    runs_ahead = any(asks.is_unsafe_dataset(node) for nodes in (body.nodes.values(), *reached) for node in nodes)
    removed = []
    for node in list(body.nodes.values()):
        unsafe = asks.find_unsafe_nodes(node.attrs["f"].name, _IN_PARALLEL) if _calls_in_parallel(node.op) else []
        is_ahead = runs_ahead and _runs_ahead(node.op)
        if not unsafe and not is_ahead:
            continue
        if not is_ahead and node.op in _SPLIT and _split_map(body, node, unsafe, library, table):
            removed.append(node)
        elif _matches(node.op, "MapAndBatchDataset"):
            _part_map_and_batch(body, node)
            removed.append(node)
        else:
            _run_in_order(body, node)
    body.remove(removed)


def split_for_determinism(function: FunctionDef, captured: int, library: FunctionLibrary, table: KernelTable) -> bool:
    """Split a function that a map calls several times at once; return whether TensorFlow does."""
    unsafe = _Determinism(library, table).find_unsafe_nodes(function.name, _IN_PARALLEL)
    return bool(unsafe) and _split(function, unsafe, captured, library, table) is not None


class _Determinism:
    """Answer which functions do something that depends on when they run."""

    def __init__(self, library: FunctionLibrary, table: KernelTable) -> None:
        self._find = library.find
        self._table = table

    def list_reached(self, body: DatasetBody) -> list[FunctionDef]:
        """Return the functions that a function's nodes reach."""
        found: dict[str, FunctionDef] = {}
        waiting = [name for node in body.nodes.values() for name in self._list_called(node)]
        while waiting:
            name = waiting.pop()
            if name not in found and (function := self._find(name)) is not None:
                found[name] = function
                waiting += [inner for node in function.nodes for inner in self._list_called(node)]
        return list(found.values())

    def is_unsafe_dataset(self, node: NodeDef) -> bool:
        """Return whether a dataset's function must not run ahead of other ops."""
        definition = self._table.op(node.op)
        is_dataset = definition is not None and _DATASET.search(node.op) is not None and len(definition.outputs) == 1
        return is_dataset and any(self._is_unsafe(name, _ASYNCHRONOUS, set()) for name in _list_functions(node.attrs))

    def find_unsafe_nodes(self, name: str, safe: Sequence[str]) -> list[str]:
        """Return the nodes of a function that must not run at any time; `safe` are the stateful ops that may."""
        function = self._find(name)
        seen = {name}
        return [] if function is None else [each.name for each in function.nodes if self._is_bad(each, safe, seen)]

    def _is_unsafe(self, name: str, safe: Sequence[str], seen: set[str]) -> bool:
        if name in seen:
            return False
        seen.add(name)
        function = self._find(name)
        return function is None or any(self._is_bad(node, safe, seen) for node in function.nodes)

    def _is_bad(self, node: NodeDef, safe: Sequence[str], seen: set[str]) -> bool:
        if self._find(node.op) is None:
            definition = self._table.op(node.op)
            if definition is None:
                return True
            is_safe = node.op in _CALLS or any(_matches(node.op, op) for op in safe)
            if definition.is_stateful and not is_safe:
                return True
        return any(self._is_unsafe(name, safe, seen) for name in self._list_called(node))

    def _list_called(self, node: NodeDef) -> list[str]:
        return [*_list_functions(node.attrs), *([node.op] if self._find(node.op) is not None else [])]


def _list_functions(attrs: Mapping[str, AttrValue]) -> Iterator[str]:
    for value in attrs.values():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, FuncRef):
                yield one.name


def _matches(op: str, prefix: str) -> bool:
    """Return whether an op is the one named, or a later version of it (`MatchesAnyVersion`)."""
    return op == prefix or (op.startswith(prefix) and _VERSION.sub("", op) == prefix)


def _calls_in_parallel(op: str) -> bool:
    named = ("ParallelInterleaveDataset", "ParallelMapDataset", "MapAndBatchDataset")
    return op == "LegacyParallelInterleaveDatasetV2" or any(_matches(op, each) for each in named)


def _runs_ahead(op: str) -> bool:
    return _calls_in_parallel(op) or any(_matches(op, each) for each in ("PrefetchDataset", "ParallelBatchDataset"))


def _split(
    function: FunctionDef, unsafe: Sequence[str], captured: int, library: FunctionLibrary, table: KernelTable
) -> tuple[FunctionDef, FunctionDef] | None:
    nodes = {node.name: [ref.removeprefix("^").partition(":")[0] for ref in node.inputs] for node in function.nodes}
    moved = reverse_reachable(unsafe, lambda name: [source for source in nodes[name] if source in nodes])
    signatures = Signatures(table, {**library.functions, **library.added})
    try:
        return split_function(function, frozenset(moved), captured, library, signatures)
    except CannotSplitError:
        return None


def _split_map(
    body: DatasetBody, node: NodeDef, unsafe: Sequence[str], library: FunctionLibrary, table: KernelTable
) -> bool:
    function = library.find(node.attrs["f"].name)
    captured = len(node.attrs.get("Targuments", ()))
    made = None if function is None else _split(function, unsafe, captured, library, table)
    if made is None:
        return False
    first, second = made
    kept = {key: node.attrs[key] for key in ("use_inter_op_parallelism", "preserve_cardinality") if key in node.attrs}
    kept["Targuments"] = node.attrs.get("Targuments", ())
    is_batched = node.op == "MapAndBatchDataset"
    data, controls = list_data(node), [ref for ref in node.inputs if ref.startswith("^")]
    extra = len(data) - (3 if is_batched else 1)
    name = body.make_name(f"make_deterministic_sequential_map/{node.name}")
    inputs = (*data[:extra], *map(_as_control, data[extra:]), *controls)
    attrs = {"f": FuncRef(first.name), "output_types": tuple(arg.dtype for arg in first.outputs), **kept}
    body.add_fused(name, "MapDataset", inputs, attrs, node)
    word = "map_and_batch" if is_batched else "parallel_map"
    last = body.make_name(f"make_deterministic_parallel_{word}/{node.name}")
    types = {key: node.attrs[key] for key in ("output_types", "output_shapes") if key in node.attrs}
    attrs = {"f": FuncRef(second.name), **types, **kept}
    if not is_batched:
        attrs["deterministic"] = b"true"
    body.add_fused(last, node.op, (f"{name}:handle:0", *node.inputs[1:]), attrs, node)
    body.hand_over(node.name, f"{last}:handle:0")
    return True


def _part_map_and_batch(body: DatasetBody, node: NodeDef) -> None:
    own = 1 + len(node.attrs.get("Targuments", ()))
    mapped = body.make_name("MapDataset")
    inputs = (*node.inputs[:own], *map(_as_control, node.inputs[own:]))
    attrs = {key: node.attrs[key] for key in ("f", "Targuments", "output_types") if key in node.attrs}
    batch = body.make_name("BatchDataset")  # before the map is added, as in TensorFlow
    body.add_fused(mapped, "MapDataset", inputs, attrs, node)
    types = {key: node.attrs[key] for key in ("output_types", "output_shapes") if key in node.attrs}
    taken = (f"{mapped}:handle:0", node.inputs[own], node.inputs[own + 2])
    body.add_fused(batch, "BatchDatasetV2", taken, types, node)
    body.hand_over(node.name, f"{batch}:handle:0")


def _run_in_order(body: DatasetBody, node: NodeDef) -> None:
    attrs = {key: value for key, value in node.attrs.items() if key not in ("deterministic", "sloppy")}
    if _matches(node.op, "PrefetchDataset"):
        nothing = body.add_constant(DataType.DT_INT64, 0)
        inputs = (node.inputs[0], nothing, *node.inputs[2:], _as_control(node.inputs[1]))
        body.nodes[node.name] = node._replace(inputs=inputs)
    elif _matches(node.op, "ParallelBatchDataset"):
        rows, size, calls, drops, *rest = node.inputs
        changed = node._replace(op="BatchDatasetV2", inputs=(rows, size, drops, _as_control(calls), *rest), attrs=attrs)
        body.nodes[node.name] = changed
    else:
        op, kept = ("MapDataset", 1) if _matches(node.op, "ParallelMapDataset") else ("InterleaveDataset", 3)
        kept += len(node.attrs.get("Targuments", ()))
        inputs = (*node.inputs[:kept], *map(_as_control, node.inputs[kept:]))
        body.nodes[node.name] = node._replace(op=op, inputs=inputs, attrs=attrs)


def _as_control(ref: str) -> str:
    return ref if ref.startswith("^") else f"^{ref.partition(':')[0]}"
