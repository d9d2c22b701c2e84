"""Results added to a function that is computed on the CPU: the shapes of the elements that it takes from iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

TAKES = "IteratorGetNext"
_WITHOUT_SHAPE = (tf.variant.as_datatype_enum, tf.resource.as_datatype_enum)
_NAME = "simplace_shape"


def add_shapes_of_elements(definition: Any, is_open: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
    """Add a result for each component of an element whose shape is open; yield the node and the component of each.

    `is_open` tells whether a node of that name leaves a shape open. A node with a component that has no shape, such as
    a dataset of datasets, is left out.
    """
    for node in [each for each in definition.node_def if each.op == TAKES and is_open(each.name)]:
        types = node.attr["output_types"].list.type
        if any(dtype in _WITHOUT_SHAPE for dtype in types):
            continue
        for slot, dtype in enumerate(types):
            name = f"{_NAME}_{len(definition.signature.output_arg)}"
            source = [f"{node.name}:components:{slot}"]
            shape = definition.node_def.add(name=name, op="Shape", input=source, device="/device:CPU:0")
            shape.attr["T"].type = dtype
            shape.attr["out_type"].type = tf.int32.as_datatype_enum
            definition.signature.output_arg.add(name=name, type=tf.int32.as_datatype_enum)
            definition.ret[name] = f"{name}:output:0"
            yield node.name, slot
