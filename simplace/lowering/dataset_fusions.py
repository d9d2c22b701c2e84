"""What TensorFlow fuses or leaves out where a function that datasets call makes datasets itself.

Mirrors the default optimizations of tf.data that also apply to functions, in the order of
tensorflow/core/grappler/optimizers/data/meta_optimizer.cc: noop_elimination.cc, shuffle_and_repeat_fusion.cc and
map_and_batch_fusion.cc. The others (parallelization, prefetching, autotuning) leave functions as they are.

A shuffle and a repeat that have been fused stay beside the new node: no dataset in a function may be pruned
(`GrapplerFunctionItem` of grappler/utils/functions.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import AttrValue, FuncRef, FunctionDef, NodeDef, TensorInfo

NOOP_ELIMINATION = "noop_elimination"
SHUFFLE_AND_REPEAT_FUSION = "shuffle_and_repeat_fusion"
MAP_AND_BATCH_FUSION = "map_and_batch_fusion"
OPTIMIZERS = (NOOP_ELIMINATION, SHUFFLE_AND_REPEAT_FUSION, MAP_AND_BATCH_FUSION)
# What the names of the datasets begin with that optimizers make which are off, unless a program turns them on by the
# options of a dataset, or asks for determinism: these are not replayed.
_MADE_BY_OTHERS = {
    "map_fusion_nodes/": "map_fusion",
    "fused_filter": "filter_fusion",
    "FilterByLast": "map_and_filter_fusion",
    "fused_map": "map_fusion",  # before TensorFlow 2.19
    "make_deterministic_": "make_deterministic",
}
_OF_DATASETS = "_tf_data_function"  # the attribute of a function that datasets call
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


def fuse_datasets(
    function: FunctionDef, library: Mapping[str, FunctionDef], left_out: Sequence[str] = ()
) -> tuple[FunctionDef, Mapping[str, str]]:
    """Return a function as TensorFlow optimizes it, if datasets call it, and what each fused node is made of first.

    `library` has what the function calls; optimizers that are left out do nothing. Where something else takes the
    elements of a map that would be fused, TensorFlow refuses the dataset (`DeleteNodes` of
    grappler/mutable_graph_view.cc), and the function stays as it is.
    """
    if not function.attrs.get(_OF_DATASETS) or not any(makes_dataset(node.op) for node in function.nodes):
        return function, {}
    body = _Body(function)
    if NOOP_ELIMINATION not in left_out:
        body.remove([node for node in function.nodes if _leave_out(body, node.name, library)])
    if SHUFFLE_AND_REPEAT_FUSION not in left_out:
        for node in [node for node in body.nodes.values() if node.op == "RepeatDataset"]:
            _fuse_shuffle(body, node.name)
    if MAP_AND_BATCH_FUSION not in left_out:
        batches = [node for node in body.nodes.values() if node.op in _BATCHES]
        body.remove([each for node in batches for each in _fuse_map(body, node.name)])
    if body.lacks_nodes():
        return function, {}
    return replace(function, nodes=tuple(body.nodes.values()), ret=body.ret), body.made_of


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


def find_unreplayed(names: Iterable[str]) -> str:
    """Return the optimizer, not replayed here, that made some of a function's datasets, by their names; "" for none.

    >>> find_unreplayed(["RangeDataset", "fused_filter/_4"])
    'filter_fusion'
    """
    made = list(names)
    found = (optimizer for start, optimizer in _MADE_BY_OTHERS.items() if any(name.startswith(start) for name in made))
    return next(found, "")


def make_unique_name(prefix: str, names: Set[str], number: int) -> str:
    """Return the prefix, or the prefix with the first number from `number` on that makes it a new name.

    Mirrors `SetUniqueGraphNodeName` of grappler/optimizers/data/graph_utils.cc.
    """
    name = prefix
    while name in names:
        name, number = f"{prefix}/_{number}", number + 1
    return name


class _Body:
    """A function's nodes by name and the tensors that it returns, to be changed."""

    def __init__(self, function: FunctionDef) -> None:
        self.nodes = {node.name: node for node in function.nodes}
        self.ret = dict(function.ret)
        self.made_of: dict[str, str] = {}
        self._arguments = {arg.name for arg in function.inputs}
        self._ends = len(function.inputs) + len(function.outputs)

    def find_input(self, name: str, slot: int = 0) -> NodeDef | None:
        """Return the node that makes an input of a node, None for an argument of the function."""
        return self.nodes.get(_name_of(self.nodes[name].inputs[slot]))

    def make_name(self, prefix: str) -> str:
        """Return a name for another node."""
        return make_unique_name(prefix, self._arguments.union(self.nodes), len(self.nodes) + self._ends)

    def add_fused(
        self, name: str, op: str, inputs: tuple[str, ...], attrs: Mapping[str, AttrValue], fused: NodeDef
    ) -> None:
        """Add a dataset that others are fused to; `fused` is the first of them."""
        self.nodes[name] = NodeDef(name, op, "", inputs, attrs)
        self.made_of[name] = fused.name

    def add_constant(self, dtype: DataType, value: int) -> str:
        """Add a constant, a scalar; return its tensor."""
        name = self.make_name("Const")
        attrs = {"dtype": dtype, "value": TensorInfo(dtype, (), value)}
        self.nodes[name] = NodeDef(name, "Const", "", (), attrs)
        return f"{name}:output:0"

    def lacks_nodes(self) -> bool:
        """Return whether a node takes a tensor of one that was removed."""
        taken = {_name_of(ref) for node in self.nodes.values() for ref in node.inputs}
        return not self._arguments.union(self.nodes).issuperset(taken)

    def hand_over(self, name: str, tensor: str) -> None:
        """Let what takes the dataset that a node makes, or runs after it, take another one."""

        def exchange(ref: str) -> str:
            if _name_of(ref) != name:
                return ref
            return f"^{_name_of(tensor)}" if ref.startswith("^") else tensor

        for node in self.nodes.values():
            if any(_name_of(ref) == name for ref in node.inputs):
                self.nodes[node.name] = node._replace(inputs=tuple(map(exchange, node.inputs)))
        self.ret = {result: exchange(ref) for result, ref in self.ret.items()}

    def remove(self, nodes: list[NodeDef]) -> None:
        """Remove nodes."""
        for node in nodes:
            self.nodes.pop(node.name, None)


def _leave_out(body: _Body, name: str, library: Mapping[str, FunctionDef]) -> bool:
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


def _fuse_shuffle(body: _Body, name: str) -> None:
    """Fuse a repeat with the shuffle before it."""
    shuffle, repeat = body.find_input(name), body.nodes[name]
    if shuffle is None or shuffle.op not in _SHUFFLES:
        return
    fused = body.make_name("ShuffleAndRepeatDataset")
    dataset, buffer, *seeds = _list_data(shuffle)
    if shuffle.op == "ShuffleDatasetV2":
        seeds = [*2 * [body.add_constant(DataType.DT_INT64, 0)], *seeds]
    attrs = {key: shuffle.attrs[key] for key in _TYPES if key in shuffle.attrs}
    attrs["reshuffle_each_iteration"] = shuffle.attrs.get("reshuffle_each_iteration", True)
    op = "ShuffleAndRepeatDataset" if shuffle.op == "ShuffleDataset" else "ShuffleAndRepeatDatasetV2"
    body.add_fused(fused, op, (dataset, buffer, *seeds[:2], repeat.inputs[1], *seeds[2:]), attrs, shuffle)
    body.hand_over(name, f"{fused}:handle:0")
    body.hand_over(shuffle.name, f"{fused}:handle:0")


def _fuse_map(body: _Body, name: str) -> list[NodeDef]:
    """Fuse a batch with the map before it; return the nodes that were fused."""
    mapped, batch = body.find_input(name), body.nodes[name]
    if mapped is None or mapped.op not in _MAPS or mapped.attrs.get("use_unbounded_threadpool"):
        return []
    fused = body.make_name("MapAndBatchDataset")
    data, (_, *size) = _list_data(mapped), _list_data(batch)
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


def _list_data(node: NodeDef) -> list[str]:
    return [ref for ref in node.inputs if not ref.startswith("^")]


def _name_of(ref: str) -> str:
    return ref.removeprefix("^").partition(":")[0]
