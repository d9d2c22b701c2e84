"""The rows of `simplace kernels OP`."""

from __future__ import annotations

import pytest

from simplace.errors import UnknownOpError
from simplace.graph.dtypes import DataType
from simplace.kernels.op_kernels import KernelRow, kernel_rows
from simplace.kernels.registry import KernelTable


def test_one_type_of_one_op() -> None:
    rows = kernel_rows(KernelTable.shipped(), "Tile", DataType.DT_FLOAT)
    int32, int64, float32 = DataType.DT_INT32, DataType.DT_INT64, DataType.DT_FLOAT
    host = ("multiples",)
    of_type = [row for row in rows if row.device_type == "GPU"]
    assert of_type == [
        KernelRow("Tile", "GPU", (("T", float32), ("Tmultiples", one)), host, 0, "") for one in (int32, int64)
    ]


def test_an_unknown_op_names_the_closest() -> None:
    with pytest.raises(UnknownOpError) as caught:
        kernel_rows(KernelTable.shipped(), "matmul")
    assert str(caught.value) == (
        "TensorFlow 2.21.0 (captured from a Linux build with CUDA) has no op 'matmul'; "
        "did you mean MatMul, _MklMatMul, BatchMatMul or SparseMatMul?"
    )
