"""Convolutions and recurrent layers: what an op computes, and what the formulas make of it."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.costs.cost_model import OpCall
from simplace.costs.gpu_constants import read_constants
from simplace.costs.gpu_convolutions import Convolution, time_convolution
from simplace.costs.gpu_kernels import GpuFigures, ProductPlan, plan_products, read_figures
from simplace.costs.gpu_recurrences import Recurrence, RecurrentLayers, time_layers, time_recurrence
from simplace.costs.gpu_sheets import SHEETS
from simplace.costs.layer_shapes import find_convolution, find_layers_of_call
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.op_work import make_tensor

VGG = Convolution(16.0, 128.0, 56.0, 56.0, 256.0, 3.0, 3.0, 56.0, 56.0, 1.0)


def call(op: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], **attrs: object) -> OpCall:
    tensors = [make_tensor("float32", shape, 4) for shape in (*inputs, output)]
    return OpCall("node", op, "GPU", attrs, tuple(tensors[:-1]), (tensors[-1],))


def plan(gpu: str, group: str, dtype: str = "float32") -> ProductPlan:
    groups, sheet = read_constants().groups, SHEETS[gpu]
    is_half = dtype == "float16"
    constants = {**groups["traffic"], **groups["tensor" if is_half else "simt"], **groups[group]}
    return plan_products(read_figures(sheet), constants, sheet.flops(dtype, is_half), 2 if is_half else 4, is_half)


IMAGE, WINDOW, MADE = (8, 30, 20, 16), (3, 5, 16, 64), (8, 15, 10, 64)
SHAPE = Convolution(8.0, 16.0, 30.0, 20.0, 64.0, 3.0, 5.0, 15.0, 10.0, 4.0)
STEP = {"strides": (1, 2, 2, 1)}


@pytest.mark.parametrize(
    ("op", "found"),
    [
        (call("Conv2D", [IMAGE, WINDOW], MADE, **STEP), (SHAPE, "forward")),
        (call("Conv2DBackpropInput", [(4,), WINDOW, MADE], IMAGE, **STEP), (SHAPE, "input")),
        (call("Conv2DBackpropFilter", [IMAGE, (4,), MADE], WINDOW, **STEP), (SHAPE, "filter")),
        (
            call("Conv2D", [(8, 16, 30, 20), WINDOW], (8, 64, 15, 10), data_format=b"NCHW", strides=(1, 1, 2, 2)),
            (SHAPE, "forward"),
        ),
        (call("Conv2D", [IMAGE, (3, 5, 4, 64)], MADE, **STEP), None),  # in four groups
        (call("Conv2D", [(30, 20, 16), WINDOW], MADE, **STEP), None),
        (call("MatMul", [(8, 8), (8, 8)], (8, 8)), None),
    ],
)  # fmt: skip
def test_the_convolution_behind_an_op(op: OpCall, found: object) -> None:
    assert find_convolution(op) == found


def test_winograd_does_more_than_the_peak_of_plain_products() -> None:
    of_three = time_convolution(plan("v100", "conv"), VGG, "forward", False)
    of_seven = time_convolution(plan("v100", "conv"), VGG._replace(kernel_h=7.0, kernel_w=7.0), "forward", False)
    assert of_three.seconds < of_three.arithmetic < 2.25 * of_three.seconds
    assert of_seven.seconds > of_seven.arithmetic


SIDES = st.sampled_from([1.0, 3.0, 5.0, 7.0])
CHANNELS = st.integers(1, 600).map(float)


@given(
    st.sampled_from(["forward", "input", "filter"]), st.sampled_from(["t4", "p100", "v100", "a100"]), st.booleans(),
    st.integers(1, 64).map(float), CHANNELS, CHANNELS, st.integers(1, 64).map(float), SIDES, st.booleans(),
    st.sampled_from([1.0, 4.0]),
)  # fmt: skip
def test_a_convolution_alone_takes_as_long_as_among_many(
    kind, gpu, is_half, batch, ins, outs, side, window, is_long, stride
) -> None:
    shape = Convolution(batch, ins, side, 2 * side, outs, window, 1.0 if is_long else window, side, side, stride)
    one = plan(gpu, "conv", "float16" if is_half else "float32")
    figures = read_figures(SHEETS[gpu])
    arrays = GpuFigures(*(np.array([getattr(figures, field.name)] * 2) for field in fields(GpuFigures)))
    many = plan_products(arrays, one.c, np.array([one.peak] * 2), one.width, is_half)
    seconds = time_convolution(one, shape, kind, is_half).seconds
    shapes = Convolution(*(np.array([size] * 2) for size in shape))
    assert time_convolution(many, shapes, kind, is_half).seconds == pytest.approx([seconds, seconds])


@pytest.mark.parametrize("kind", ["forward", "input", "filter"])
def test_a_small_convolution_takes_its_helpers_and_on_tensor_cores_little(kind) -> None:
    small = Convolution(1.0, 8.0, 4.0, 4.0, 8.0, 1.0, 1.0, 4.0, 4.0, 1.0)
    plain = plan("v100", "conv")
    helper_s = plain.c[f"{kind}_helper_s"]
    assert helper_s < time_convolution(plain, small, kind, False).seconds < helper_s + 10e-6
    half = plan("v100", "conv", "float16")
    assert time_convolution(half, small, kind, True).seconds < 10e-6


def test_tensor_cores_take_channels_by_eights() -> None:
    half = plan("v100", "conv", "float16")
    shapes = [VGG._replace(in_channels=channels) for channels in (1.0, 8.0, 16.0)]
    one, eight, sixteen = (time_convolution(half, shape, "forward", True).seconds for shape in shapes)
    assert one == eight < sixteen


def test_a_gradient_at_a_stride_costs_more_than_the_work_that_it_is() -> None:
    strided = Convolution(32.0, 256.0, 56.0, 56.0, 512.0, 1.0, 1.0, 28.0, 28.0, 4.0)
    forward, back = (time_convolution(plan("v100", "conv"), strided, kind, False) for kind in ("forward", "input"))
    assert forward.arithmetic == back.arithmetic
    assert back.seconds > 1.3 * forward.seconds


def test_on_tensor_cores_a_gradient_at_a_stride_skips_the_zeros() -> None:
    strided = Convolution(32.0, 64.0, 56.0, 56.0, 64.0, 5.0, 5.0, 28.0, 28.0, 4.0)
    half = plan("v100", "conv", "float16")
    forward, back = (time_convolution(half, strided, kind, True).seconds for kind in ("forward", "input"))
    assert back < 2 * forward  # with zeros it would be four times the work


def test_a_models_convolution_tells_how_far_off_it_is() -> None:
    cost = make_modelled_costs("v100").kernel(call("Conv2D", [IMAGE, WINDOW], MADE, **STEP))
    assert (cost.source, cost.error) == ("modelled", read_constants().errors["conv_forward"])


def rnn(op: str, steps: int, layers: int, **attrs: object) -> OpCall:
    return call(op, [(steps, 32, 64), (layers, 32, 128), (layers, 32, 128), (9,)], (steps, 32, 128), **attrs)


def test_the_layers_behind_a_recurrent_op() -> None:
    assert find_layers_of_call(rnn("CudnnRNNV3", 50, 2, rnn_mode=b"gru")) == (
        RecurrentLayers(3, 128, 32, 50, (64, 128), 1, is_gradient=False)
    )
    both = rnn("CudnnRNNBackpropV3", 50, 4, direction=b"bidirectional")
    assert find_layers_of_call(both) == RecurrentLayers(4, 128, 32, 50, (64, 256), 2, is_gradient=True)
    tensors = [(32, 50, 64), (32, 4, 128), (32, 4, 128), (9,)]
    turned = call("CudnnRNNV3", tensors, (32, 50, 256), direction=b"bidirectional", time_major=False)
    assert find_layers_of_call(turned) == RecurrentLayers(4, 128, 32, 50, (64, 256), 2, is_gradient=False)
    assert find_layers_of_call(rnn("CudnnRNN", 50, 3, direction=b"bidirectional")) is None
    assert find_layers_of_call(call("MatMul", [(8, 8), (8, 8)], (8, 8))) is None


def test_the_host_launches_each_kernel_of_each_step() -> None:
    """Half as long on the device is no less long on the whole: two LSTM layers on an H200 took as long in float16."""
    model = make_modelled_costs("h200")
    layer = call("CudnnRNNV3", [(100, 64, 128), (1, 64, 512), (1, 64, 512), (9,)], (100, 64, 512))
    full, half = (
        model.kernel(replace(layer, outputs=(layer.outputs[0]._replace(dtype=dtype),)))
        for dtype in ("float32", "float16")
    )
    for cost in (full, half):
        assert cost.launches == 208
        assert cost.later_s == pytest.approx(207 * cost.host_s)
        assert cost.device_s == pytest.approx(cost.later_s, rel=0.01)
    assert half.waits_s > full.waits_s > 0
    assert half.bound == "latency"


def test_with_the_cudnn_of_old_gpus_the_host_was_quicker() -> None:
    cost = make_modelled_costs("p100", has_own_kernels=False).kernel(rnn("CudnnRNNV3", 50, 2))
    assert cost.launches == 2 * (2 * 50 + 8)
    assert cost.waits_s == 0 < cost.later_s < cost.device_s


def test_steps_wait_for_each_other() -> None:
    short, long = (
        time_recurrence(plan("v100", "rnn"), Recurrence(4.0, 512.0, 32.0, float(steps)), "forward").seconds
        for steps in (1, 100)
    )
    assert long == pytest.approx(100 * short)
    at_once = time_recurrence(plan("v100", "rnn"), Recurrence(4.0, 512.0, 32.0, 100.0), "weights").seconds
    assert at_once < long / 4  # one product over all steps


def time_steps(gpu: str, batch: int) -> float:
    layer = Recurrence(4.0, 1024.0, float(batch), 100.0)
    return float(time_recurrence(plan(gpu, "rnn"), layer, "input").seconds)


def test_a_few_sequences_share_a_reading_of_the_weights() -> None:
    one, eight, nine = (time_steps("v100", batch) for batch in (1, 8, 9))
    assert one == eight < nine


def test_before_volta_a_batch_of_32_waits_along_the_sum() -> None:
    assert time_steps("p100", 32) > 1.5 * time_steps("p100", 64)
    assert time_steps("v100", 32) <= time_steps("v100", 64)


def test_layers_and_directions_add_up() -> None:
    products, steps = plan("v100", "rnn"), plan("v100", "rnn")
    one = RecurrentLayers(4, 256, 32, 20, (256,), 1, is_gradient=False)
    whole = time_layers(products, steps, one).seconds
    assert time_layers(products, steps, replace(one, widths=(256, 256))).seconds == pytest.approx(2 * whole)
    assert time_layers(products, steps, replace(one, directions=2)).seconds == pytest.approx(2 * whole)
    assert time_layers(products, steps, replace(one, is_gradient=True)).seconds > whole


def test_which_cudnn_runs_is_not_the_gpu_s_matter() -> None:
    """TensorFlow has cuDNN 9 on each, whose steps are shorter than those that were measured on older GPUs."""
    layer = rnn("CudnnRNNV3", 50, 1)
    ours, measured = (make_modelled_costs("t4", has_own_kernels=own).kernel(layer) for own in (True, False))
    assert ours.device_s - ours.waits_s < measured.device_s / 2
