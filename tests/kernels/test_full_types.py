"""Full types of outputs, as the op registrations construct them."""

from __future__ import annotations

import pytest

from simplace.graph.dtypes import DataType
from simplace.kernels.full_type import FullTypeError
from simplace.kernels.full_types import full_type_of, is_host

STRING, FLOAT, VARIANT = DataType.DT_STRING, DataType.DT_FLOAT, DataType.DT_VARIANT
CASES = [
    ("RangeDataset", {"output_types": (DataType.DT_INT64,)}, "Product[Dataset[Product[Tensor[Int64]]]]", True),
    ("TensorListReserve", {"element_dtype": STRING}, "Product[Array[Tensor[String]]]", True),
    ("TensorListReserve", {"element_dtype": FLOAT}, "Product[Array[Tensor[Float]]]", False),
    ("TensorListReserve", {"element_dtype": VARIANT}, "Product[Array]", False),
    ("OptionalFromValue", {"Toutput_types": (STRING,)}, "Product[Optional[Product[Tensor[String]]]]", True),
    ("RaggedTensorToVariant", {"Tvalues": STRING}, "Product[Ragged[String]]", True),
    ("MutexLock", {}, "Product[MutexLock]", True),
    ("DatasetFromGraph", {}, "Product[Dataset[Any]]", True),
    ("TextLineDataset", {}, "Product[Dataset[Tensor[String]]]", True),
    ("Shape", {}, "Product[ShapeTensor[Int32]]", False),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs", "text", "on_host"), CASES)
def test_constructed_types(op: str, attrs: dict[str, object], text: str, on_host: bool) -> None:
    made = full_type_of(op, attrs)
    assert made is not None
    assert (str(made), is_host(made)) == (text, on_host)


def test_an_op_without_constructor() -> None:
    assert full_type_of("MatMul", {"T": FLOAT}) is None
    assert full_type_of("some_function", {}) is None


def test_attributes_that_do_not_fill_the_type() -> None:
    with pytest.raises(FullTypeError, match="'output_types', which is an empty list"):
        full_type_of("RangeDataset", {"output_types": ()})
    with pytest.raises(FullTypeError, match="'output_types', which the node does not have"):
        full_type_of("RangeDataset", {})
