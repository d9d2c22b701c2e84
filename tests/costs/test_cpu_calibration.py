"""What a CPU was measured to reach: from times to rates, in a cost file and out of it, and what it is used for."""

import json
import os
from math import log
from pathlib import Path
from typing import Any

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.costs.calibrated_cpu import CalibratedCpu, parse_cpu, write_cpu
from simplace.costs.chosen_cpu import find_cpu, use_calibration
from simplace.costs.chosen_model import cost_model
from simplace.costs.cost_model import KernelCost, OpCall, Overheads
from simplace.costs.cpu_calibration import derive_cpu
from simplace.costs.hardware import CPU_2_CORES
from simplace.costs.op_work import make_tensor
from simplace.costs.recorded_costs import RecordedCosts, cost_file
from simplace.costs.roofline import make_roofline
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from simplace.views.text.step_agreement import describe_cpu
from tests.executor.worlds import placed

CPU = CalibratedCpu(
    "AMD EPYC", 4, 2.5e9, {"float32": ((1e6, 20e9), (1e9, 80e9)), "float64": ((1e9, 40e9),)}, 30e9,
    ((1e4, 40e9), (1e8, 20e9)), ((1e4, 40e9), (1e8, 5e9)), 25e9, 2e-6,
)  # fmt: skip
GRAPH = "x = Placeholder() @c {dtype=float, shape=dims(1000)}\nA = Neg(x) @c\nB = Neg(A) @c"


def write(folder: Path, cpu: CalibratedCpu | None) -> str:
    file = folder / "costs.json"
    content = cost_file({"A": 0.25}, intra_op=1, fixed=Overheads(), tensorflow="2.21.0", cpu=cpu)
    file.write_text(json.dumps(content))
    return str(file)


def neg(elements: int) -> OpCall:
    one = make_tensor("float32", (elements,), 4)
    return OpCall("n", "Neg", "CPU", {}, (one,), (one,))


def product(side: int, dtype: str = "float32") -> OpCall:
    one = make_tensor(dtype, (side, side), 4)
    return OpCall("m", "MatMul", "CPU", {}, (one, one), (one,))


def costs_of(name: str, costs: str) -> KernelCost:
    """Return what a node of `GRAPH` costs in a schedule."""
    estimated = schedule_placement(placed(GRAPH), costs=costs).estimated
    return next(c for n, c in zip(estimated.graph.nodes, estimated.kernels, strict=True) if n.name == name)


def test_rates_leave_out_the_time_of_the_smallest_kernel() -> None:
    cpu = derive_cpu({
        "model": "A", "cores": 2, "clock": 2e9, "least_s": 1e-6, "together": (24e6, 3.001e-3),
        "products": {"float32": [(2e6, 11e-6), (2e9, 20.001e-3)]}, "exp": (62_500, 51e-6),  # of 16 FLOPs each
        "reads": [(4e3, 1.05e-6), (24e6, 2.001e-3)], "sums": [(4e3, 2e-6), (24e6, 8.001e-3)],
    })  # fmt: skip
    assert [rate for _, rate in cpu.products["float32"]] == pytest.approx([200e9, 100e9])
    assert cpu.vector == pytest.approx(20e9)
    assert [rate for _, rate in cpu.reads] == pytest.approx([4e3 / 0.105e-6, 12e9])  # a tenth of a time at least
    near = 12e9 + (4e3 / 0.105e-6 - 12e9) * log(24e6 / 8e3) / log(24e6 / 4e3)  # a sum reads two
    assert cpu.writes == (pytest.approx((4e3, 4e3 / (1e-6 - 8e3 / near))), pytest.approx((24e6, 6e9)))
    assert (cpu.core_bandwidth, cpu.bandwidth) == pytest.approx((9e9, 24e9))


def test_all_cores_draw_no_less_than_one() -> None:
    probes: dict[str, Any] = {"model": "", "cores": 1, "clock": 0.0, "least_s": 0.0, "products": {}}
    times = {"exp": (1, 1.0), "reads": [(1e8, 0.01)], "sums": [(1e8, 0.03)], "together": (1e8, 0.04)}
    assert derive_cpu({**probes, **times}).bandwidth == pytest.approx(1e10)


def test_a_cost_file_has_it_after_writing_and_reading(tmp_path: Path) -> None:
    model = cost_model(write(tmp_path, CPU))
    assert isinstance(model, RecordedCosts)
    assert model.cpu == CPU


def test_other_ops_of_a_file_run_on_its_cpu(tmp_path: Path) -> None:
    own, other = (costs_of(name, write(tmp_path, CPU)) for name in "AB")
    assert (own.source, own.host_s) == ("measured", 0.25)
    assert (other.source, other.host_s) == ("calibrated", pytest.approx(2e-6 + 8000 / 40e9))  # 4,000 each way


def test_a_file_from_before_is_read_as_it_was(tmp_path: Path) -> None:
    file = write(tmp_path, None)
    assert "cpu" not in json.loads(Path(file).read_text())
    other = costs_of("B", file)
    assert (other.source, other.host_s) == ("guessed", pytest.approx(1e-6 + 8000 / 10e9))


def test_a_named_cpu_goes_before_that_of_the_file(tmp_path: Path) -> None:
    model = cost_model(write(tmp_path, CPU), cpu="xeon-8375c")
    assert model.kernel(neg(1 << 24)).source == "guessed"
    assert "Xeon Platinum 8375C" in model.name


def test_cpu_takes_a_cost_file(tmp_path: Path) -> None:
    file = write(tmp_path, CPU)
    core = find_cpu(file)
    assert (core.name, core.cores, core.clock, core.least_s) == ("AMD EPYC (calibrated)", 4, 2.5e9, 2e-6)
    assert (core.bandwidth, core.whole_bandwidth) == (pytest.approx(10e9), 25e9)
    assert StepOptions(cpu=file).cores == 4


def test_the_cores_are_those_of_the_cpu_that_a_file_was_measured_on(tmp_path: Path) -> None:
    file = write(tmp_path, CPU)
    chosen = [StepOptions(costs=file), StepOptions(costs=cost_model(file)), StepOptions(costs=file, cores=3)]
    assert [options.cores for options in chosen] == [4, 4, 3]
    assert StepOptions(costs=file, cpu="epyc-7763").cores == 64
    assert StepOptions(costs=write(tmp_path, None)).cores == 2
    assert StepOptions(costs="measured").cores == len(os.sched_getaffinity(0))


def test_cpu_refuses_a_file_without_it(tmp_path: Path) -> None:
    with pytest.raises(SimplaceError, match=r'costs.json: has no "cpu"; simplace measure TARGET -o FILE writes'):
        find_cpu(write(tmp_path, None))


def test_rates_are_those_of_an_op_s_size() -> None:
    model = make_roofline(cpu=use_calibration(CPU))
    assert model.kernel(product(1000)).host_s == pytest.approx(2e-6 + 2e9 / 80e9)
    assert model.kernel(product(64)).host_s == pytest.approx(2e-6 + 2 * 64**3 / 20e9)
    assert model.kernel(product(1000, "float64")).host_s == pytest.approx(2e-6 + 2e9 / 40e9)
    assert model.kernel(neg(1000)).host_s == pytest.approx(2e-6 + 8000 / 40e9)
    # Half-way, by the logarithm.
    assert model.kernel(neg(250_000)).host_s == pytest.approx(2e-6 + 1e6 / 30e9 + 1e6 / 22.5e9)
    assert model.kernel(neg(25_000_000)).host_s == pytest.approx(2e-6 + 1e8 / 20e9 + 1e8 / 5e9)
    assert model.kernel(neg(25_000_000)).least_part_s == pytest.approx(2e8 / 25e9)


# What a machine of two cores took: seconds of a read of so many bytes, and of a sum of two such tensors, which is twice
# sooner done than both were read.
READS = ((1 << 12, 1.6e-6), (1 << 16, 6e-6), (1 << 20, 90e-6), (1 << 23, 0.8e-3), (1 << 26, 8e-3))
SUMS = ((1 << 12, 1.9e-6), (1 << 16, 14e-6), (1 << 20, 130e-6), (1 << 23, 2.9e-3), (1 << 26, 35e-3))
PROBED = derive_cpu({
    "model": "A", "cores": 2, "clock": 2.5e9, "least_s": 1e-6, "products": {"float32": [(2e9, 0.02)]},
    "exp": (1 << 16, 20e-6), "reads": READS, "sums": SUMS, "together": (1 << 26, 35e-3),
})  # fmt: skip


def add(size: int) -> OpCall:
    one = make_tensor("float32", (size // 4,), 4)
    return OpCall("a", "AddV2", "CPU", {}, (one, one), (one,))


@pytest.mark.parametrize(("size", "seconds"), SUMS)
def test_the_sums_that_were_timed_take_what_they_took(size: int, seconds: float) -> None:
    assert make_roofline(cpu=use_calibration(PROBED)).kernel(add(size)).host_s == pytest.approx(seconds, rel=0.01)


def test_threads_share_the_memory_and_not_what_the_caches_hold() -> None:
    """All cores together draw no more of the memory than one does, and yet share an op that is partly in the caches."""
    model = make_roofline(cpu=use_calibration(PROBED))
    assert PROBED.bandwidth == pytest.approx(PROBED.core_bandwidth)
    middle, large = (model.kernel(add(size)) for size in (1 << 22, 1 << 26))
    assert middle.shards > 2
    assert middle.least_part_s < 0.75 * middle.host_s
    assert large.least_part_s == pytest.approx(large.host_s - 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_products_of_a_type_that_was_not_timed_are_guessed_at_float32_s_rate(dtype: str) -> None:
    model = make_roofline(cpu=use_calibration(CPU))
    found, known = model.kernel(product(1000, dtype)), model.kernel(product(1000))
    assert (found.host_s, found.source, known.source) == (pytest.approx(known.host_s), "guessed", "calibrated")


def test_elementwise_arithmetic_is_slower_than_products() -> None:
    model = make_roofline(cpu=use_calibration(CPU))
    half = {dtype: make_tensor(dtype, (1000,), 1) for dtype in ("float32", "float64")}  # bytes that do not count
    exp, double = (model.kernel(OpCall("e", "Exp", "CPU", {}, (one,), (one,))).host_s for one in half.values())
    assert exp == pytest.approx(2e-6 + 16_000 / 30e9)
    assert double == pytest.approx(2e-6 + 16_000 / 15e9)


def test_an_op_without_a_formula_stays_guessed() -> None:
    one = make_tensor("float32", (8,), 4)
    cost = make_roofline(cpu=use_calibration(CPU)).kernel(OpCall("u", "Mystery", "CPU", {}, (one,), (one,)))
    assert (cost.source, cost.is_guess) == ("guessed", True)


def test_a_clock_that_nobody_knows_is_the_assumed_one() -> None:
    values = {**write_cpu(CPU), "clock": 0.0}
    assert use_calibration(parse_cpu("costs.json", values)).clock == CPU_2_CORES.clock


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cores": 0}, 'cores of "cpu" is 0; it must be a whole number from 1 to 4,096'),
        ({"cores": True}, 'cores of "cpu" is True'),
        ({"model": 3}, 'model of "cpu" is 3; it must be a text'),
        ({"model": "a\x1b[2J"}, 'model of "cpu" is .* a text of one line'),
        ({"bandwidth": 0}, 'bandwidth of "cpu" has 0; it must be a number, 1 or more'),
        ({"bandwidth": "fast"}, "bandwidth of \"cpu\" has 'fast'"),
        ({"clock": -1}, 'clock of "cpu" has -1'),
        ({"least_s": float("nan")}, 'least_s of "cpu" has nan'),
        ({"products": {}}, 'products of "cpu" maps data types, float32 among them'),
        ({"products": {"float32": [[1e6]]}}, 'products of "cpu" is a list of pairs'),
        ({"reads": []}, 'reads of "cpu" is a list of pairs'),
        ({"writes": [[2e6, 1e9], [1e6, 1e9]]}, 'the amounts in writes of "cpu" must grow'),
        ({"speed": 3}, '"cpu" has the fields bandwidth, clock, cores'),
    ],
)
def test_a_wrong_entry_gets_one_line(changed: dict[str, object], message: str) -> None:
    with pytest.raises(SimplaceError, match=message) as caught:
        parse_cpu("costs.json", {**write_cpu(CPU), **changed})
    assert "\n" not in str(caught.value)


def test_it_is_told_in_one_line() -> None:
    assert describe_cpu(CPU) == "this CPU: 4 cores, AMD EPYC: 80 GFLOP/s and 10 GB/s a core, 25 GB/s together"


def test_its_times_carry_their_source() -> None:
    assert KernelCost(1.0, source="calibrated").off == make_roofline(cpu=use_calibration(CPU)).kernel(neg(8)).off
