"""What cuDNN's recurrent layers keep and take, held against sizes that it was asked for on other machines."""

from __future__ import annotations

import pytest

from simplace.costs.cost_model import OpCall, Tensor
from simplace.costs.gpu_recurrences import RecurrentLayers
from simplace.costs.recurrent_memory import count_reserve_bytes, count_workspace_bytes, list_workspace
from simplace.costs.shape_rules import infer_shape
from simplace.graph.dtypes import DataType

FOUR = (123, 320, 320, 320)  # pytorch/pytorch#2895: four layers, 25,000 steps of sequences in all
LSTM = RecurrentLayers(4, 320, 100, 250, FOUR, 1, is_gradient=False)
GRU = RecurrentLayers(3, 320, 100, 250, FOUR, 1, is_gradient=False)
RELU = RecurrentLayers(1, 512, 64, 20, (512, 512), 1, is_gradient=False)  # tensorflow/tensorflow#30889


@pytest.mark.parametrize(
    ("layers", "reserve", "workspace"), [(LSTM, 736_000_000, 17_730_560), (GRU, 864_000_000, 13_169_920)]
)
def test_the_sizes_that_cudnn_gave_for_four_layers(layers: RecurrentLayers, reserve: int, workspace: int) -> None:
    """The workspace had no results of all steps then, which take FP32."""
    results = 4 * 4 * layers.gates * 25_000 * 320
    assert count_reserve_bytes(layers, 4) == reserve
    assert count_workspace_bytes(layers, 4, is_padded=False) - results == workspace


def test_the_workspaces_that_cudnn_gave_for_padded_sequences_and_others() -> None:
    lengths = 768
    assert count_workspace_bytes(RELU, 4, is_padded=False) == 9_961_472
    assert count_workspace_bytes(RELU, 4, is_padded=True) == 21_496_576 - lengths


def test_cells_of_an_lstm_and_results_are_float32_in_half_precision_too() -> None:
    one = RecurrentLayers(4, 8, 1, 10, (8,), 1, is_gradient=False)
    assert count_reserve_bytes(one, 2) == 10 * 8 * (4 * 2 + 4)
    whole, half = (count_workspace_bytes(one, element, is_padded=False) for element in (4, 2))
    assert 2 * half - whole == 10 * 8 * 4 * 4


INPUTS = [(64, 100, 128), (64, 1, 512), (64, 1, 512), (1_314_816,), (64,)]  # of Keras: the batch first


@pytest.mark.parametrize(
    ("attrs", "slot", "shape"),
    [
        ({}, 3, (100 * 64 * 512 * 5,)),
        ({"rnn_mode": b"gru"}, 3, (100 * 64 * 512 * 6,)),
        ({"T": DataType.DT_HALF}, 3, (100 * 64 * 512 * 6,)),
        ({"T": DataType.DT_BFLOAT16}, 3, (100 * 64 * 512 * 10,)),  # what cuDNN computes in FP32
        ({"is_training": False}, 3, ()),
        ({}, 4, ()),
        ({}, 1, None),
    ],
)
def test_the_outputs_that_only_the_gradient_reads(attrs: dict[str, object], slot: int, shape: object) -> None:
    assert infer_shape("CudnnRNNV3", {"T": DataType.DT_FLOAT, "time_major": False, **attrs}, INPUTS, slot) == shape


def test_other_outputs_have_no_rule() -> None:
    assert infer_shape("CudnnRNNV3", {}, [(2, 2)], 3) is None
    assert infer_shape("CudnnRNNBackpropV3", {}, INPUTS, 3) is None
    assert infer_shape("MatMul", {}, [(2, 2), (2, 2)], 1) is None


def call(op: str, **attrs: object) -> OpCall:
    tensors = tuple(Tensor("float32", shape, 0) for shape in INPUTS)
    return OpCall("r", op, "GPU", {"T": DataType.DT_FLOAT, "time_major": False, **attrs}, tensors, ())


def test_a_workspace_grows_with_the_batch_but_for_the_weights() -> None:
    fixed, growing = list_workspace(call("CudnnRNNV3"))
    assert fixed.size == 4 * 4 * 512 * (128 + 512)
    assert (growing.shape[0], growing.size % 64) == (64, 0)
    assert list_workspace(call("CudnnRNNBackpropV3")) == (fixed, growing)
    assert list_workspace(call("MatMul")) == ()
