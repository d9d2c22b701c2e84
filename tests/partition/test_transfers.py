"""Copies between devices: one per tensor, destination and memory, shared by its consumers."""

from simplace.partition.copies import list_copies
from simplace.partition.shapes import TensorSizes
from simplace.program.program import NodeNotes
from tests.worlds import CPU, GPU0, GPU1, constant, node, place


def test_one_copy_serves_all_consumers_on_a_device():
    placement = place(
        constant("a", (2, 3), device="/CPU:0"),
        node("x", "Neg", "a", device="/GPU:0"),
        node("y", "Exp", "a", device="/GPU:0"),
        node("z", "Neg", "a", device="/GPU:1"),
    )
    found = list_copies(placement.placed)
    names = placement.graph.names
    shown = [(c.tensor, c.source, c.target, c.dtype, c.shape, c.size, [names[i] for i in c.consumers]) for c in found]
    assert shown == [
        ("a:0", CPU, GPU0, "float32", (2, 3), 24, ["x", "y"]),
        ("a:0", CPU, GPU1, "float32", (2, 3), 24, ["z"]),
    ]


def test_a_control_edge_across_devices_sends_an_empty_tensor():
    placement = place(constant("a", (4,), device="/CPU:0"), constant("b", (4,), device="/GPU:0"),
                      node("x", "Neg", "b", "^a", device="/GPU:0"))  # fmt: skip
    (copy,) = list_copies(placement.placed)
    assert (copy.tensor, copy.is_control, copy.shape, copy.size, copy.source, copy.target) == (
        "^a", True, (0,), 0, CPU, GPU0,
    )  # fmt: skip


def test_int32_on_a_gpu_crosses_to_host_memory():
    placement = place(
        constant("a", (2, 2), device="/GPU:0"),
        node("shape", "Shape", "a", device="/GPU:0"),
        node("r", "Reshape", "a", "shape", device="/GPU:0", extra='attr { key: "Tshape" value { type: DT_INT32 } }'),
    )
    assert list_copies(placement.placed) == [], "Shape puts its result in host memory, where Reshape reads it"


def test_nothing_is_copied_on_one_device():
    assert list_copies(place(constant("a", (2,)), node("x", "Neg", "a"), gpus=0).placed) == []


def test_unknown_dimensions_leave_the_size_open():
    notes = {"x": NodeNotes(shapes=((-1, 8),))}
    placement = place(node("x", "Placeholder"), node("y", "Neg", "x"), notes=notes)
    sizes, x = TensorSizes(placement.placed), placement.graph.ids["x"]
    assert (sizes.shape(x, 0), sizes.size(x, 0), sizes.shape(placement.graph.ids["y"], 0)) == ((-1, 8), None, None)
