"""Whole steps of transformers: the ops that they are made of, and how these add up to a step."""

import csv
import json
from collections import Counter

import pytest

from benchmarks.costs_steps import judge_steps, read_steps, tabulate_steps
from benchmarks.step_models import LAYERS, Transformer
from benchmarks.step_ops import OpList
from benchmarks.step_prediction import MeasuredStep, StepPredictor
from simplace.costs.cost_model import CollectiveCall
from simplace.costs.gpu_constants import read_constants
from simplace.costs.op_work import count_work
from tests.executor.worlds import Costs

BATCH, SEQ = 2, 64
SMALL = Transformer("megatron", 4, 128, 4, 512, 1000, 32)
PRODUCTS = ("MatMul", "BatchMatMulV2")


def layer(kind: str, ways: int = 1) -> OpList:
    ops = OpList("float32", True, ways)
    LAYERS[kind](ops, Transformer(kind, 4, 128, 4, 512, 1000, 32), BATCH, SEQ, 0)
    return ops


def count_flops(calls) -> float:
    return sum(count_work(one).flops for one in calls if one.op in PRODUCTS)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "opt", "megatron"])
def test_a_layer_has_the_products_of_its_weights_and_of_attention(kind: str) -> None:
    ops = layer(kind)
    weights, tokens = 12 * 128**2, BATCH * SEQ
    assert count_flops(ops.forward) == 2 * weights * tokens + 2 * 2 * tokens * SEQ * 128
    assert count_flops(ops.backward) == 2 * count_flops(ops.forward)


def test_four_gpus_share_a_layer_and_sum_up_twice_in_each_pass() -> None:
    whole, part = layer("megatron"), layer("megatron", ways=4)
    assert count_flops(part.forward) == count_flops(whole.forward) / 4
    for calls in (part.forward, part.backward):
        sums = [one for one in calls if isinstance(one, CollectiveCall)]
        assert sums == [CollectiveCall("all_reduce", 4 * BATCH * SEQ * 128, 4, "GPU")] * 2


def test_a_step_is_bound_by_the_gpu_or_by_launches() -> None:
    calls = [one for one in layer("bert").forward if one.op == "MatMul"][:3]
    bound_by_gpu, bound_by_host = (StepPredictor(Costs(launch=launch)) for launch in (0.1, 2.0))
    assert bound_by_gpu.run(calls) == pytest.approx(3.1e-3)
    assert bound_by_host.run(calls) == pytest.approx(7e-3)


def step(**changes: object) -> MeasuredStep:
    values = {"source": "s", "gpu": "Tesla T4", "name": "gpt", "mode": "train", "model": SMALL, "batch": BATCH,
              "seq": SEQ, "seconds": 1.0, **changes}  # fmt: skip
    return MeasuredStep(**values)  # type: ignore[arg-type]


def test_gradients_are_summed_behind_the_backward_pass() -> None:
    alone = StepPredictor(Costs()).predict(step())
    hidden = StepPredictor(Costs(collectives=1.0)).predict(step(data=4))
    assert hidden == pytest.approx(alone + 1e-3)  # but for the last bucket


def test_a_pipeline_is_as_fast_as_its_slowest_stage() -> None:
    costs = Costs(copies=0.0)
    times = [
        StepPredictor(costs).predict(step(mode="iteration", pipeline=2, micro_batches=count, dtype="float16"))
        for count in (1, 2, 3)
    ]
    one_stage = StepPredictor(costs).predict(
        step(mode="iteration", pipeline=1, micro_batches=1, dtype="float16", model=SMALL)
    )
    assert times[1] - times[0] == pytest.approx(times[2] - times[1])
    assert one_stage / 3 < times[1] - times[0] < one_stage


CONFIG = {"model_type": "gpt2", "n_embd": 128, "n_head": 4, "n_layer": 2, "vocab_size": 1000}


def test_measured_steps_are_read_judged_and_tabulated(tmp_path) -> None:
    folder = tmp_path / "neusight-models"
    (folder / "model_configs").mkdir(parents=True)
    (folder / "model_configs/tiny.json").write_text(json.dumps(CONFIG))
    row = {"gpu": "Tesla T4", "gpus": 1, "model": "tiny", "mode": "infer", "batch": 2, "seq": 64, "seconds": 1e-3,
           "parallelism": "none", "compiled": 0}  # fmt: skip
    rows = [row, {**row, "compiled": 1}, {**row, "gpus": 4, "parallelism": "data", "mode": "train", "batch": 8}]
    with (folder / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerows(rows)
    steps = read_steps(tmp_path)
    assert Counter((one.mode, one.gpus, one.batch, one.is_compiled) for one in steps) == {
        ("infer", 1, 2, False): 1, ("infer", 1, 2, True): 1, ("train", 4, 2, False): 1,
    }  # fmt: skip
    judged = judge_steps(steps, {}, read_constants())
    assert judged[1].shipped < judged[0].shipped  # fused
    assert all(one.left_out == one.shipped for one in judged)
    lines = list(tabulate_steps(judged))
    assert [line.split(" | ")[:3] for line in lines if line.startswith("| inference")][:2] == [
        ["| inference", "Tesla T4", "1"], ["| inference", "Tesla T4, torch.compile", "1"],
    ]  # fmt: skip
