"""What is said of eager ops: why each is where it is, what is copied, and what nobody would expect."""

from dataclasses import replace

import pytest

from simplace.devices.device_set import local_devices
from simplace.doctor.advice import advise_on_finding
from simplace.errors import NodeNotFoundError
from simplace.explain.eager import explain_eager
from simplace.explain.eager_findings import EagerCopiesEachTime, find_in_eager, line_of_eager
from simplace.explain.failures import RefusedOp
from simplace.explain.findings import IdleGpu, NoKernel, NoSuchDevice
from simplace.exports.eager_report import eager_report
from simplace.graph.dtypes import DataType
from simplace.pipeline import EagerPlacer
from simplace.placement.eager.eager_placement import EagerCopies, PlacedEager, PlacedOp
from simplace.program.eager_op import EagerInput, EagerOp
from simplace.program.observation import MadeBy
from simplace.views.text import eager_tables
from simplace.views.text.eager_summary import write_eager_summary
from tests.worlds import CPU, GPU0, GPU1, shipped
from viz import to_text

FLOAT, INT, RESOURCE = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_RESOURCE
DEVICES = local_devices([("CPU", 1), ("GPU", 2)])
ABSENT = CPU.replace("CPU:0", "GPU:7")


def ran(line, op, *inputs, times=1, tensors=None, scope="", soft=True, made_by=(), library="", **attrs):
    """Return an op that ran; `tensors` counts what was copied, by input, in 100 bytes each."""
    given = EagerOp(op, f"model.py:{line}", scope, soft, attrs, tuple(EagerInput(*each) for each in inputs), library)
    placement = EagerPlacer(DEVICES, shipped()).place(given)
    copies = tuple(
        EagerCopies(copy.input, copy.source, copy.target, tensors[copy.input], 100 * tensors[copy.input])
        for copy in placement.copies
        if tensors
    )
    return PlacedOp(f"model.py:{line} {op}", placement, times, copies, made_by)


def program(*ops):
    return PlacedEager(ops, DEVICES, shipped())


LOOP = (
    ran(2, "RandomStandardNormal", (INT, CPU), scope=CPU, dtype=FLOAT, T=INT),
    ran(4, "MatMul", (FLOAT, CPU), (FLOAT, GPU0), times=300, tensors={0: 300}, made_by=(MadeBy(0, 0, 1),), T=FLOAT),
    ran(6, "AsString", (FLOAT, GPU0), times=300, tensors={0: 300}, scope=GPU1, T=FLOAT),
)


SUMMARY = """\
outside of functions: 3 eager ops, run 601 times

device  ops  times  copied in
────────────────────────────────────────
CPU:0     2    301  300 copies, 29.3 KiB
GPU:0     1    300  300 copies, 29.3 KiB
GPU:1     0      0  -

line        device  ops                   inputs copied
──────────────────────────────────────────────────────────────
model.py:2  CPU:0   RandomStandardNormal  -
model.py:4  GPU:0   MatMul ×300           300 copies, 29.3 KiB
model.py:6  CPU:0   AsString ×300         300 copies, 29.3 KiB

findings
  ! MatMul (model.py:4) runs 300 times on GPU:0, and its input 0 comes from CPU:0: 300 copies, 30,000 bytes in
    all, see doctor/eager-copies
  ! AsString (model.py:6) runs 300 times on CPU:0, and its input 0 comes from GPU:0: 300 copies, 30,000 bytes
    in all, see doctor/eager-copies
  ! AsString (model.py:6): The scope around it requests /device:GPU:1, but AsString has no kernel there for
    its data types; soft placement chose CPU:0 instead, see doctor/no-kernel
  ! GPU:1 is idle: no op requests it, and TensorFlow does not distribute ops by itself, see doctor/idle-gpu"""


def told(name, *ops):
    return str(explain_eager(program(*ops), name)).splitlines()


def test_an_op_in_a_loop():
    assert told("model.py:4", *LOOP) == [
        "MatMul at model.py:4 runs 300 times on GPU:0.",
        "  1. MatMul with T=float32 has a kernel for GPU and CPU.",
        "  2. No device was requested; the first one of the best type with a kernel is used: GPU:0.",
        "  3. Its input 0 is on CPU:0 and is copied to GPU:0: 300 tensors, 30,000 bytes in all.",
        "see reason/eager_best_kernel",
    ]


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (
            ran(6, "AsString", (FLOAT, GPU0), scope=GPU1, T=FLOAT),
            "The scope around it requests /device:GPU:1, but AsString has no kernel there for its data types; soft "
            "placement chose CPU:0 instead.",
        ),
        (
            ran(6, "Relu", (FLOAT, GPU0), scope=ABSENT, T=FLOAT),
            "The scope around it requests /device:GPU:7, but no such device exists here; soft placement chose GPU:0 "
            "instead.",
        ),
        (
            ran(6, "AsString", (FLOAT, CPU), T=FLOAT),
            "No device was requested; GPU has priority but no kernel for it, so it runs on CPU:0.",
        ),
        (
            ran(6, "Relu", (FLOAT, GPU0), scope=GPU1, T=FLOAT),
            "The scope around it requests /device:GPU:1, and it has a kernel there: GPU:1.",
        ),
        (
            ran(6, "ReadVariableOp", (RESOURCE, GPU1), scope=CPU, dtype=FLOAT),
            "Its input 0 is a resource on GPU:1, and an op goes where that is, whatever the scope requests "
            "(/device:CPU:0).",
        ),
        (
            ran(6, "ReadVariableOp", (RESOURCE, GPU1), dtype=FLOAT),
            "Its input 0 is a resource on GPU:1, and an op goes where that is.",
        ),
        (
            ran(6, "AddV2", (INT, CPU, True), (INT, CPU, True), T=INT),
            "All its inputs are integers of at most 64 elements on the CPU, and the environment is set to keep such "
            "ops there: CPU:0.",
        ),
    ],
)
def test_every_rule_has_its_sentence(op, reason):
    assert reason in [line.partition(". ")[2] for line in told("model.py:6", op)[1:]]
    (node,) = eager_report(program(op), None)["nodes"]
    assert node["reason"]["text"] == reason


def test_an_op_without_a_kernel_where_its_variable_is_is_refused():
    state = ran(4, "StatefulRandomBinomial", (RESOURCE, GPU0), *[(DataType.DT_INT64, CPU)] * 2, (FLOAT, CPU),
                (FLOAT, CPU), S=DataType.DT_INT64, T=FLOAT, dtype=FLOAT)  # fmt: skip
    found = [each for each in find_in_eager(program(state)) if isinstance(each, RefusedOp)]
    assert [(each.source, each.op, each.home) for each in found] == [("model.py:4", "StatefulRandomBinomial", "GPU:0")]
    assert line_of_eager(found[0]).startswith("StatefulRandomBinomial has no device (model.py:4): Cannot assign a dev")


def test_an_op_of_two_resources_on_different_devices_is_refused():
    lookup = ran(5, "LookupTableFindV2", (RESOURCE, CPU), (DataType.DT_STRING, CPU), (RESOURCE, GPU0),
                 Tin=DataType.DT_STRING, Tout=RESOURCE)  # fmt: skip
    (found,) = (each for each in find_in_eager(program(lookup)) if isinstance(each, RefusedOp))
    assert (found.op, found.home, found.elsewhere) == ("LookupTableFindV2", "CPU:0", "GPU:0")
    assert "reference or resource edge connects" in found.error
    advice = advise_on_finding(found)
    assert "the resources that this one works on are on CPU:0 and GPU:0" in advice.why
    assert advice.instead == "Create all of them on one device: under tf.device('CPU:0')."


def test_a_refused_op_says_what_tensorflow_says():
    op = ran(3, "AsString", (FLOAT, GPU0), scope=GPU1, soft=False, T=FLOAT)
    headline, *_, last, page = told("AsString", op)
    assert headline == "AsString at model.py:3 has no device: TensorFlow refuses to place it."
    assert last.startswith("  3. TensorFlow refuses it (INVALID_ARGUMENT): Could not satisfy device specification")
    assert page == "see doctor/refused-op"


def test_results_in_host_memory():
    assert told("Shape", ran(3, "Shape", (FLOAT, GPU0), T=FLOAT, out_type=INT))[-2] == (
        "  3. It runs on GPU:0, but its int32 result is kept in host memory."
    )


def test_several_ops_of_one_line_and_none():
    two = (ran(3, "Relu", (FLOAT, GPU0), scope=GPU1, T=FLOAT), ran(3, "Tanh", (FLOAT, GPU0), times=2, T=FLOAT))
    headline, *_, pages = told("model.py:3", *two)
    assert headline == "model.py:3: 2 ops outside of functions, run 3 times."
    assert pages == "see reason/requested, reason/eager_best_kernel"
    with pytest.raises(NodeNotFoundError, match="no eager op is called 'Rel'; did you mean Relu"):
        explain_eager(program(*two), "Rel")


def test_the_findings_of_a_loop():
    found = find_in_eager(program(*LOOP, ran(8, "Relu", (FLOAT, CPU), scope=ABSENT, T=FLOAT)))
    assert [type(each) for each in found] == [EagerCopiesEachTime, EagerCopiesEachTime, NoKernel, NoSuchDevice, IdleGpu]
    assert line_of_eager(found[0]) == (
        "MatMul (model.py:4) runs 300 times on GPU:0, and its input 0 comes from CPU:0: 300 copies, 30,000 bytes in all"
    )
    assert (found[4].devices, found[2].request, found[2].got) == (("GPU:1",), "/device:GPU:1", "CPU:0")


def test_gpus_are_idle_only_where_the_program_runs_nothing_but_eager_ops():
    on_cpu = program(ran(3, "Relu", (FLOAT, CPU), scope=CPU, T=FLOAT))
    assert [type(each) for each in find_in_eager(on_cpu)] == [IdleGpu]
    assert find_in_eager(on_cpu, is_all=False) == []


def test_the_copies_of_a_line_are_one_finding():
    add = ran(4, "AddV2", (FLOAT, CPU), (FLOAT, CPU), times=20, tensors={0: 20, 1: 20}, T=FLOAT)
    found = [each for each in find_in_eager(program(*LOOP[:2], add)) if isinstance(each, EagerCopiesEachTime)]
    assert [line_of_eager(each) for each in found] == [
        "MatMul, AddV2 (model.py:4) run 300 times on GPU:0, and inputs come from CPU:0: 340 copies, 34,000 bytes in all"
    ]
    assert found[0].nodes == ("model.py:4 MatMul", "model.py:4 AddV2")


def test_copies_from_several_gpus_are_one_finding():
    taken = [ran(4, "Relu", (FLOAT, gpu), scope=CPU, times=9, tensors={0: 9}, T=FLOAT) for gpu in (GPU0, GPU1)]
    (one,) = (each for each in find_in_eager(program(*taken)) if isinstance(each, EagerCopiesEachTime))
    assert line_of_eager(one) == (
        "Relu (model.py:4) runs 9 times on CPU:0, and its input 0 comes from GPU:0, GPU:1: 18 copies, "
        "1,800 bytes in all"
    )


def test_the_scopes_that_the_ops_of_a_line_did_not_get_are_one_finding():
    strings = [ran(6, "AsString", (FLOAT, GPU0), times=i, scope=GPU1, T=FLOAT) for i in (3, 5)]
    joined = ran(6, "StringUpper", (DataType.DT_STRING, CPU), scope=GPU1)
    absent = [ran(6, op, (FLOAT, GPU0), scope=ABSENT, T=FLOAT) for op in ("Relu", "Tanh", "Exp", "Sin")]
    found = find_in_eager(program(*strings, joined, *absent))
    assert [line_of_eager(each) for each in found[:2]] == [
        "AsString, StringUpper (model.py:6): The scope around it requests /device:GPU:1, but AsString has no kernel "
        "there for its data types; soft placement chose CPU:0 instead.",
        "Relu, Tanh, Exp and 1 more (model.py:6): The scope around it requests /device:GPU:7, but no such device "
        "exists here; soft placement chose GPU:0 instead.",
    ]
    assert [len(each.nodes) for each in found[:2]] == [3, 4]


def test_copies_of_a_library_and_a_few_bytes_are_no_finding():
    inside = replace(LOOP[1], placement=replace(LOOP[1].placement, op=replace(LOOP[1].op, library="keras")))
    few = ran(5, "Relu", (FLOAT, CPU), times=10, tensors={0: 10}, T=FLOAT)
    enough = ran(6, "Relu", (FLOAT, CPU), times=11, tensors={0: 11}, T=FLOAT)
    found = [each for each in find_in_eager(program(inside, few, enough)) if isinstance(each, EagerCopiesEachTime)]
    assert [(each.source, each.bytes) for each in found] == [("model.py:6", 1100)]


def test_what_is_copied_once_is_no_finding():
    once = ran(4, "MatMul", (FLOAT, CPU), (FLOAT, GPU0), times=300, tensors={0: 1}, T=FLOAT)
    constants = ran(5, "_EagerConst", (FLOAT, CPU), times=9, tensors={0: 9}, T=FLOAT)
    assert [type(each) for each in find_in_eager(program(once, constants))] == [IdleGpu]


def test_what_a_library_copies_or_asks_for_by_itself_is_no_finding():
    own = ran(4, "MatMul", (FLOAT, CPU), (FLOAT, GPU0), times=99, tensors={0: 99}, library="keras", T=FLOAT)
    asked = ran(5, "AsString", (FLOAT, CPU), scope=GPU1, library="tf.distribute", T=FLOAT)
    absent = ran(6, "Relu", (FLOAT, CPU), scope=ABSENT, library="tf.distribute", T=FLOAT)
    assert [type(each) for each in find_in_eager(program(own, asked, absent))] == [NoSuchDevice, IdleGpu]


def test_what_the_program_hands_to_a_library_from_another_device_is_a_finding():
    maker = ran(3, "Relu", (FLOAT, CPU), scope=CPU, T=FLOAT)
    given = ran(
        4, "MatMul", (FLOAT, CPU), (FLOAT, GPU0), times=99, tensors={0: 99}, made_by=(MadeBy(0, 0, 99),),
        library="keras", T=FLOAT,
    )  # fmt: skip
    assert [type(each) for each in find_in_eager(program(maker, given))] == [EagerCopiesEachTime, IdleGpu]


def test_the_summary_by_device_and_line():
    assert write_eager_summary(program(*LOOP), 110) == SUMMARY


def test_of_many_lines_those_with_the_most_copies_are_shown():
    shown = to_text(eager_tables.line_table(program(*LOOP), 2))
    assert "model.py:2" not in shown
    assert shown.endswith("and 1 more line; --table lists every op")


def test_alike_devices_of_a_line_share_a_row_and_count_once_where_there_are_many():
    one = ran(2, "Relu", (FLOAT, GPU0), scope=GPU0, T=FLOAT)
    on = [replace(one.placement.choice, device=GPU0.replace("GPU:0", f"GPU:{i}")) for i in range(4)]
    four = [replace(one, placement=replace(one.placement, choice=choice)) for choice in on]
    eager = PlacedEager((*LOOP[1:], *four), local_devices([("CPU", 1), ("GPU", 4)]), shipped())
    alike = ("model.py:2", "GPU:0 … GPU:3, each", "Relu", "-")
    assert alike in eager_tables.line_table(eager).rows
    few = eager_tables.line_table(eager, 2)
    assert (len(few.rows), few.footer) == (2, "and 4 more lines; --table lists every op")


def test_the_report_names_what_made_an_input():
    report = eager_report(program(*LOOP), None)
    assert (report["name"], report["kind"], len(report["nodes"])) == ("eager ops", "eager", 3)
    assert report["nodes"][1]["inputs"][0] == {
        "dtype": "float32", "device": CPU, "made_by": [{"name": "model.py:2 RandomStandardNormal", "times": 1}],
    }  # fmt: skip
    assert report["copies"][0] == {
        "op": "model.py:4 MatMul", "input": 0, "from": CPU, "to": GPU0, "dtype": "float32", "tensors": 300,
        "bytes": 30000,
    }  # fmt: skip
