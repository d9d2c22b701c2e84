"""CPUs: peaks by hand, names, descriptions, and what a schedule makes of them."""

import re
from pathlib import Path

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.costs.chosen_cpu import find_cpu
from simplace.costs.chosen_model import cost_model
from simplace.costs.cost_model import OpCall
from simplace.costs.cpu_sheets import SHEETS, find_cpu_sheet
from simplace.costs.cpu_spec import parse_cpu_spec
from simplace.costs.hardware import CPU_2_CORES
from simplace.costs.op_work import make_tensor
from simplace.costs.roofline import make_roofline
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepOptions
from tests.executor.worlds import placed

SPEC = "16 cores, 2.9 GHz, 512 bit, 2 fma, 200 GB/s"


@pytest.mark.parametrize(
    ("name", "float32", "float64", "socket"),
    [
        # GHz * 2 operations * units * elements of a vector; channels * 8 bytes * 10^9 transfers a second
        ("xeon-8375c", 2.9 * 2 * 2 * 16, 2.9 * 2 * 2 * 8, 204.8),
        ("xeon-6148", 2.4 * 2 * 2 * 16, 2.4 * 2 * 2 * 8, 127.968),
        ("epyc-7763", 2.45 * 2 * 2 * 8, 2.45 * 2 * 2 * 4, 204.8),
        ("epyc-9654", 3.55 * 2 * 2 * 8, 3.55 * 2 * 2 * 4, 460.8),
        ("graviton2", 2.5 * 2 * 2 * 4, 2.5 * 2 * 2 * 2, 204.8),
        ("graviton3", 2.6 * 2 * 2 * 8, 2.6 * 2 * 2 * 4, 307.2),
        ("i7-9700k", 4.6 * 2 * 2 * 8, 4.6 * 2 * 2 * 4, 42.656),
        ("m1", 3.2 * 2 * 4 * 4, 3.2 * 2 * 4 * 2, 68.256),
    ],
)
def test_peaks_are_clock_times_units_times_vector(name: str, float32: float, float64: float, socket: float) -> None:
    sheet = SHEETS[name]
    found = (sheet.peak["float32"] / 1e9, sheet.peak["float64"] / 1e9, sheet.bandwidth / 1e9)
    assert found == pytest.approx((float32, float64, socket))


def test_products_of_bfloat16_are_faster_only_where_instructions_are() -> None:
    tiles, pairs, none = (find_cpu(name) for name in ("xeon-8480", "epyc-9654", "epyc-7763"))
    assert tiles.flops("bfloat16", on_matrix_units=True) == 2e9 * 1024
    assert pairs.flops("bfloat16", on_matrix_units=True) == 2 * pairs.flops("float32", on_matrix_units=False)
    assert none.flops("bfloat16", on_matrix_units=True) == none.flops("float32", on_matrix_units=False)
    assert tiles.flops("bfloat16", on_matrix_units=False) == tiles.flops("float32", on_matrix_units=False)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "Xeon Gold 6148"),
        ("Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz", "Xeon Platinum 8175M"),
        ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", "Xeon Platinum 8375C"),
        ("Intel(R) Xeon(R) Platinum 8480+", "Xeon Platinum 8480+"), ("AMD EPYC 7763 64-Core Processor", "EPYC 7763"),
        ("AMD EPYC 7R13 Processor", "EPYC 7R13"), ("AMD EPYC 9654 96-Core Processor", "EPYC 9654"),
        ("AMD Ryzen 9 5950X 16-Core Processor", "Ryzen 9 5950X"), ("AWS Graviton3", "Graviton3"),
        ("Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz", "Core i7-9700K"), ("Apple M1", "Apple M1"),
        ("7742", "EPYC 7742"), ("XEON-8259CL", "Xeon Platinum 8259CL"),
    ],
)  # fmt: skip
def test_a_system_s_name_finds_its_sheet(name: str, found: str) -> None:
    sheet = find_cpu_sheet(name)
    assert sheet is not None
    assert sheet.name == found


@pytest.mark.parametrize(
    "name", ["AMD EPYC", "Intel(R) Xeon(R) CPU @ 2.20GHz", "cpu", "-", "EPYC 7763 Turbo", "0", "c"]
)
def test_a_name_that_tells_no_model_finds_none(name: str) -> None:
    assert find_cpu_sheet(name) is None


def test_the_page_of_costs_lists_every_short_name() -> None:
    page = Path(__file__).parents[2] / "docs" / "costs.md"
    table = page.read_text().partition("## CPUs in the library")[2]
    assert set(SHEETS) <= set(re.findall(r"[a-z][\w-]*\d\w*", table))


def test_one_core_draws_less_than_the_socket() -> None:
    for name, sheet in SHEETS.items():
        core = find_cpu(name)
        assert (core.cores, core.whole_bandwidth) == (sheet.cores, sheet.bandwidth)
        assert 1e9 < core.bandwidth < core.whole_bandwidth, name


def test_a_description_gives_peaks_and_bandwidth() -> None:
    core = find_cpu(SPEC)
    assert core.name == "CPU of 16 cores"
    assert core.flops("float32", on_matrix_units=True) == pytest.approx(2.9e9 * 2 * 2 * 16)
    assert (core.cores, core.whole_bandwidth, core.bandwidth) == (16, 200e9, 22.7e9)
    assert find_cpu("200 GB/s,2 FMA,512 bits,2.9GHz,16 cores, 12.5 GB/s a core").bandwidth == 12.5e9


@pytest.mark.parametrize("socket", [100, 110, 400])
def test_a_core_of_a_server_draws_less_whatever_the_socket_has(socket: int) -> None:
    desktop, server = (find_cpu(f"{n} cores, 3 GHz, 256 bit, 2 fma, {socket} GB/s") for n in (16, 17))
    assert (desktop.bandwidth, server.bandwidth) == (22.7e9, 10e9)


def test_a_desktop_s_core_draws_more() -> None:
    assert find_cpu("8 cores, 3 GHz, 256 bit, 2 fma, 50 GB/s").bandwidth == 22.7e9
    assert find_cpu("1 core, 3 GHz, 256 bit, 2 fma, 5 GB/s").bandwidth == 5e9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("16 cores, 2.9 GHz, 512 bit, 2 fma", "lacks gb/s; write it as in '16 cores"),
        ("16 cores, 2.9 GHz", "lacks bit, fma, gb/s"),
        (f"{SPEC}, 4 cores", "has cores twice"),
        (f"{SPEC}, fast", "cannot read 'fast' of the CPU"),
        (f"{SPEC}, ", "cannot read '' of the CPU"),
        (SPEC.replace("16", "9" * 400), "cannot read '9{400} cores'"),
        (SPEC.replace("16", "0"), "0 cores in the CPU .* above 0, and at most 4,096"),
        (SPEC.replace("16", "5000"), "5000 cores in the CPU"),
        (SPEC.replace("16", "1.5"), "1.5 cores in the CPU .* a whole number"),
        (SPEC.replace("512", "500"), "a vector of 500 bit"),
        (SPEC.replace("2.9", "2900"), "2900 ghz in the CPU"),
        (SPEC.replace("200", "0"), "0 gb/s in the CPU"),
    ],
)
def test_a_description_that_cannot_be_gets_one_line(text: str, message: str) -> None:
    with pytest.raises(SimplaceError, match=message) as caught:
        parse_cpu_spec(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("xeon-8375d", r"'xeon-8375d' is not a CPU .*: did you mean xeon-8375c"),
        ("z80", "'z80' is not a CPU .*: docs/costs.md lists all, such as xeon-8375c, epyc-7763; or describe it"),
        ("none/costs.json", "none/costs.json: cannot read the CPU: No such file"),
        ("x\0" * 3000, "is not a CPU"),
    ],
)
def test_an_unknown_cpu_gets_one_line(name: str, message: str) -> None:
    with pytest.raises(SimplaceError, match=message) as caught:
        find_cpu(name)
    assert "\n" not in str(caught.value)


def test_a_named_cpu_takes_the_place_of_the_assumed_one() -> None:
    one = make_tensor("float32", (1024, 1024), 4)
    product = OpCall("m", "MatMul", "CPU", {}, (one, one), (one,))
    plain, named = (cost_model("modelled", cpu=cpu).kernel(product).host_s for cpu in ("", "xeon-8375c"))
    assert plain == pytest.approx(1e-6 + 2 * 1024**3 / 86.4e9)
    assert named == pytest.approx(1e-6 + 2 * 1024**3 / (2.9e9 * 64))
    assert "Xeon Platinum 8375C" in cost_model("analytic", cpu="xeon-8375c").name


def test_without_a_name_all_is_as_it_was() -> None:
    assert make_roofline().hardware.cpu is CPU_2_CORES
    assert StepOptions().cores == 2
    assert (CPU_2_CORES.cores, CPU_2_CORES.whole_bandwidth) == (2, 0.0)


def test_the_cores_are_those_of_the_cpu_unless_given() -> None:
    assert [StepOptions(cpu="epyc-7763").cores, StepOptions(cpu="epyc-7763", cores=4).cores] == [64, 4]
    assert StepOptions(cpu="epyc-7763").inter_op_size == 64


NEG = "x = Placeholder() @c {dtype=float, shape=dims(1 << 24)}\nA = Neg(x) @c"
MOVED = 2 * 4 * (1 << 24)  # bytes


@pytest.mark.parametrize("executor", ["tensorflow", "textbook"])
@pytest.mark.parametrize(
    ("socket", "threads", "seconds"),
    [
        (40e9, 1, MOVED / 10e9), (40e9, 2, MOVED / 20e9), (40e9, 16, MOVED / 40e9),
        (400e9, 16, MOVED / 160e9),
    ],
)  # fmt: skip
def test_threads_that_share_an_op_share_the_socket(executor: str, socket: float, threads: int, seconds: float) -> None:
    cpu = f"16 cores, 3 GHz, 256 bit, 2 fma, {socket / 1e9:g} GB/s, 10 GB/s a core"
    done = schedule_placement(placed(NEG), cpu=cpu, inter_op=1, intra_op=threads, executor=executor)
    longest = max(span.duration for span in done.trace.spans if span.kind == "shard" or threads == 1)
    assert longest / 1e9 == pytest.approx(seconds, rel=1e-3)


def test_without_a_cpu_threads_share_no_memory() -> None:
    done = schedule_placement(placed(NEG), cores=16, inter_op=1, intra_op=16)
    longest = max(span.duration for span in done.trace.spans if span.kind == "shard")
    assert longest / 1e9 == pytest.approx(MOVED / 160e9, rel=1e-3)
