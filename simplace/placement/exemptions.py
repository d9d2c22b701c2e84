"""The ops that are not colocated with their resource inputs.

Mirrors REGISTER_INPUT_COLOCATION_EXEMPTION (tensorflow/core/common_runtime/input_colocation_exemption_registry.h
and its uses in tensorflow/core/ops and tensorflow/core/kernels).
"""

from __future__ import annotations

import re

from simplace.graph.dtypes import DataType

EXEMPT_FROM_INPUT_COLOCATION = frozenset(
    """
    IdentityN PartitionedCall StatefulPartitionedCall RpcServerRegister
    MapDataset ParallelMapDataset ParallelMapDatasetV2 MapAndBatchDataset ExperimentalMapAndBatchDataset
    FlatMapDataset InterleaveDataset ParallelInterleaveDataset ParallelInterleaveDatasetV2
    ParallelInterleaveDatasetV3 ParallelInterleaveDatasetV4 ExperimentalParallelInterleaveDataset
    LegacyParallelInterleaveDatasetV2 FilterDataset ParallelFilterDataset TakeWhileDataset
    ExperimentalTakeWhileDataset ReduceDataset ScanDataset ExperimentalScanDataset GroupByReducerDataset
    ExperimentalGroupByReducerDataset GroupByWindowDataset ExperimentalGroupByWindowDataset GeneratorDataset
    DeleteMultiDeviceIterator
    """.split()
)

_DATASET = re.compile(r"(?:DatasetFromGraph|.*Dataset(?:V[0-9]+)?)")


def is_dataset_op(op: str, out_types: tuple[int, ...]) -> bool:
    """Return whether an op makes a dataset (DatasetOpKernel::IsDatasetOp, tensorflow/core/framework/dataset.cc).

    >>> is_dataset_op("MapDataset", (21,)), is_dataset_op("TensorListReserve", (21,))
    (True, False)
    """
    if out_types != (DataType.DT_VARIANT,):
        return False
    wrapped = op.startswith("__wrapped__")  # an eager op run as a function: __wrapped__MapDataset_device_...
    return _DATASET.fullmatch(op.split("_")[4] if wrapped else op) is not None
