"""Full types on their way through a graph: passed on, merged, or stopped where they do not go together."""

from simplace.graph.graph import freeze_graph
from simplace.graph.graph_text import build_graph
from simplace.kernels.full_type import FullType, is_host
from simplace.kernels.registry import KernelTable
from simplace.lowering.op_signatures import Signatures
from simplace.placement.type_inference import infer_types, is_subtype

TABLE = KernelTable.shipped()
TENSOR = {kind: FullType("TFT_TENSOR", (FullType(f"TFT_{kind}"),)) for kind in ("STRING", "FLOAT")}
WORLD = """
shape = Const() [dtype=int32]
size = Const() [dtype=int32]
p = Const() [dtype=bool]
s = Const() [dtype=string]
strings = TensorListReserve(shape, size) [element_dtype=string, shape_type=int32]
numbers = TensorListReserve(shape, size) [element_dtype=float32, shape_type=int32]
nothing = OptionalNone()
text = OptionalFromValue(s) [Toutput_types=[string]]
"""


def types(lines):
    graph = freeze_graph(build_graph(WORLD.strip() + "\n" + lines.strip(), Signatures(TABLE, {})))
    return {name: str(full) for name, full in zip(graph.names, infer_types(graph, TABLE), strict=True)}


def test_identities_and_switches_pass_a_type_on():
    found = types("""
a = Identity(strings) [T=variant]
b = Switch(a, p) [T=variant]
c = Identity(b:1) [T=variant]
""")
    assert found["b"] == "Product[Array[Tensor[String]], Array[Tensor[String]]]"
    assert found["c"] == "Product[Array[Tensor[String]]]"
    assert found["p"] == "Unset"


def test_a_merge_takes_the_most_special_type():
    found = types("""
a = Merge(nothing, text) [N=2, T=variant]
b = Identity(a) [T=variant]
""")
    assert found["text"] == "Product[Optional[Product[Tensor[String]]]]"
    assert found["b"] == found["text"]


def test_types_that_clash_end_the_inference_and_keep_what_was_found():
    found = types("""
a = Merge(strings, numbers) [N=2, T=variant]
b = Identity(a) [T=variant]
""")
    assert found["strings"] == "Product[Array[Tensor[String]]]"
    assert (found["a"], found["b"]) == ("Unset", "Unset")


def test_subtypes():
    strings, numbers = (FullType("TFT_OPTIONAL", (TENSOR[kind],)) for kind in ("STRING", "FLOAT"))
    assert is_subtype(strings, FullType("TFT_UNSET"))
    assert is_subtype(strings, FullType("TFT_TENSOR", (FullType("TFT_LEGACY_VARIANT"),)))
    assert not is_subtype(strings, numbers)
    assert is_host(strings)
    assert not is_host(numbers)
