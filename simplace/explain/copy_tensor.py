"""The variants that a placement sends to a GPU and that TensorFlow cannot copy there.

Mirrors `CopyHostToDevice` of tensorflow/core/common_runtime/copy_tensor.cc, and what the types that a variant may hold
have registered with INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION: a dataset nothing (framework/dataset.cc), a
list a copy of each element, which fails for what is no plain memory (kernels/tensor_list.cc). A ragged tensor and an
Optional keep their strings in host memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from simplace.graph import dtypes
from simplace.graph.dtypes import DataType, base_type
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import CONTROL_FLOW, IDENTITIES, is_arg, is_merge
from simplace.kernels.dataset_ops import is_dataset_op
from simplace.partition.transfers import MemoryTypes
from simplace.placement.host_only import LIST_OPS
from simplace.placement.placement import Placement

Content = Literal["dataset", "list of strings", "list of handles"]

# What tensor_handle.cc and copy_tensor.cc say of a tensor that cannot come to a device.
_COPY = re.compile(
    r"Can't copy Tensor with type (?P<type>\w+) to device (?P<device>\S+?)\.?(?:\s|$)"
    r"|No unary variant device copy function found for direction: \d and Variant type_index: (?P<variant>[^\[\n]*)"
    r"|non-DMA-copy attempted of tensor type: (?P<element>\w+)"
)
_TARGET = re.compile(r"Failed copying input tensor from \S+ to \S*/device:(?P<device>\w+:\d+)")
_HANDED_ON = CONTROL_FLOW | IDENTITIES | {"IdentityN"}
_LISTS: dict[int, Content] = {DataType.DT_STRING: "list of strings", DataType.DT_RESOURCE: "list of handles"}


@dataclass(frozen=True, slots=True)
class UncopiedVariant:
    """Record of an edge over which a variant would go to a GPU: what it holds, and who makes and takes it."""

    content: Content
    maker: int
    producer: int
    consumer: int


@dataclass(frozen=True, slots=True)
class CopyError:
    """Record of what TensorFlow said of a tensor that it could not copy: its line, the content, the device in short."""

    error: str
    content: str
    device: str


def read_copy_error(error: str) -> CopyError | None:
    """Return what an error says of a tensor that could not be copied, None where it is about something else."""
    copied = _COPY.search(error)
    if copied is None:
        return None
    line = next(line for line in error.splitlines() if copied[0].strip() in line)
    return CopyError(line.strip(), *_describe_copy(copied, error))


def find_uncopied_variants(placement: Placement) -> Iterator[UncopiedVariant]:
    """Yield the edges to a GPU's memory whose variant has no copy function, in the order of the consumers."""
    graph, devices = placement.graph, placement.node_devices
    gpus = {device.name for device in placement.devices if device.type == "GPU"}
    taking = {types for types in set(graph.in_types) if DataType.DT_VARIANT in types}
    if not taking or not gpus:
        return
    memory = MemoryTypes(placement.placed)
    for node in graph.op_ids:
        if graph.in_types[node] not in taking or devices[node] not in gpus:
            continue
        for edge in graph.data_in_edges(node):
            slot, producer = graph.edge_src_slot[edge], graph.edge_src[edge]
            is_there = devices[producer] in gpus and not memory.of(producer)[1][slot]
            is_variant = base_type(graph.out_types[producer][slot]) == DataType.DT_VARIANT
            if not is_variant or is_there or memory.of(node)[0][graph.edge_dst_slot[edge]]:
                continue
            found = next(iter(_find_contents(placement, producer, slot)), None)
            if found is not None:
                yield UncopiedVariant(*found, producer, node)


def describe_error(content: Content) -> str:
    """Return what TensorFlow says when it comes to the copy."""
    if content == "dataset":
        return (
            "No unary variant device copy function found for direction: 1 and Variant type_index: "
            "tensorflow::data::(anonymous namespace)::DatasetVariantWrapper"
        )
    element = next(dtype for dtype, name in _LISTS.items() if name == content)
    return (
        "During Variant Host->Device Copy: non-DMA-copy attempted of tensor type: "
        f"{dtypes.format_dtype(DataType(element))}"
    )


def _find_contents(placement: Placement, node: int, slot: int) -> Iterator[tuple[Content, int]]:
    """Yield what the variant on an output may hold, with its maker, behind the nodes that hand it on."""
    graph = placement.graph
    seen: set[tuple[int, int]] = set()
    waiting = [(node, slot)]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        node, slot = at
        if graph.ops[node] not in _HANDED_ON:
            content = _name_content(placement, node)
            if content is not None:
                yield content, node
            continue
        into = graph.data_in_edges(node)
        chosen = into if is_merge(graph.ops[node]) else [into[slot if graph.ops[node] == "IdentityN" else 0]]
        waiting += [(graph.edge_src[edge], graph.edge_src_slot[edge]) for edge in reversed(chosen)]


def _name_content(placement: Placement, node: int) -> Content | None:
    """Return what a node puts into its variant, None for anything that can be copied, or is not known."""
    graph: Graph = placement.graph
    op, attrs = graph.ops[node], graph.attrs[node]
    if is_arg(op):
        return "dataset" if attrs.get("index", -1) in placement.program.datasets else None
    if is_dataset_op(op, placement.groups.support.table.op(op), graph.out_types[node]):
        return "dataset"
    return _LISTS.get(attrs.get("element_dtype", DataType.DT_INVALID)) if op in LIST_OPS else None


def _describe_copy(copied: re.Match[str], error: str) -> tuple[str, str]:
    """Return what could not be copied, and the device in short."""
    target = _TARGET.search(error)
    device = target["device"] if target else (copied["device"] or "").rpartition("/device:")[2] or "a GPU"
    if copied["type"]:
        return f"a tensor of type {copied['type']}", device
    if copied["element"]:
        return f"a list with elements of type {copied['element']}", device
    return ("a dataset" if "Dataset" in copied["variant"] else f"a variant of type {copied['variant'].strip()}"), device
