"""The ops that are not colocated with their resource inputs.

Mirrors REGISTER_INPUT_COLOCATION_EXEMPTION (tensorflow/core/common_runtime/input_colocation_exemption_registry.h
and its uses in tensorflow/core/ops and tensorflow/core/kernels).
"""

from __future__ import annotations

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
