"""Findings on graphs: each fires where it should and says nothing where all is well."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from simplace.devices.device_set import DeviceSet, local_devices, make_device
from simplace.doctor import silent_failures as found
from simplace.doctor.advice import TITLES, advise_on_finding
from simplace.doctor.examinations import diagnose_result
from simplace.explain.failures import format_failure
from simplace.explain.finding import StepCost
from simplace.explain.findings import HostMemory, NoKernel, NoSuchDevice
from simplace.explain.placement_findings import rank_findings
from simplace.exports.finding_verdicts import describe_problem, list_verdicts
from simplace.graph.graph_def import parse_text
from simplace.pipeline import place_program
from simplace.program.observation import PythonFact
from simplace.program.program import NodeNotes, Program
from simplace.result import Placed, Result
from tests.worlds import constant, node, place, shipped

LABEL = 'attr {{ key: "_class" value {{ list {{ s: "loc:@{}" }} }} }}'
PYTHON = "".join(f'attr {{ key: "{name}" value {{ list {{ type: DT_FLOAT }} }} }}' for name in ("Tin", "Tout"))
WELL = (constant("a", (2, 3)), node("mm", "MatMul", "a", "a"), node("mm1", "MatMul", "a", "a", device="/GPU:1"))


def result(*nodes, facts=(), **settings):
    placement = place(*nodes, **settings)
    return Result("g.pb", "2.21.0", "shipped", placement.devices, (Placed(placement),), python=facts)


def fact(kind, at="model.py:3", **values):
    return PythonFact(kind, at, MappingProxyType(values))


def findings(*nodes, saved=False, environment=None, **settings):
    return list(diagnose_result(result(*nodes, **settings), is_saved=saved, environment=environment or {}))


def rules(*nodes, **settings):
    return [finding.rule for finding in findings(*nodes, **settings)]


def test_nothing_is_found_where_all_is_well():
    assert findings(*WELL) == []


def test_a_device_that_is_not_there():
    notes = {"mm": NodeNotes("model.py:7")}
    (one,) = findings(*WELL, node("x", "MatMul", "a", "a", device="/GPU:7"), notes={"x": notes["mm"]})
    assert one == NoSuchDevice("model.py:7", "world", ("x",), "/GPU:7", "GPU:0", "", "", "CPU:0, GPU:0, GPU:1")


def test_a_device_baked_into_a_file_soft_and_hard():
    baked = (*WELL, node("x", "MatMul", "a", "a", device="/GPU:7"))
    assert rules(*baked, saved=True) == ["baked-device"]
    hard = findings(*baked, saved=True, soft=False)
    assert [(one.rule, getattr(one, "is_refused", None)) for one in hard] == [("refused", None), ("baked-device", True)]
    assert rules(*WELL, saved=True) == []


def test_a_kernel_that_is_missing():
    (one,) = findings(*WELL, node("x", "MatrixSquareRoot", "a", device="/GPU:0"))
    assert one == NoKernel("", "world", ("x",), "/GPU:0", "CPU:0", "", "", "MatrixSquareRoot", "")
    assert "MatrixSquareRoot has no kernel there" in advise_on_finding(one).why


def test_what_a_strategy_requests_is_no_request_of_the_program():
    asked = node("x", "MatrixSquareRoot", "a", device="/GPU:0")
    assert rules(*WELL, asked, notes={"x": NodeNotes("model.py:7", "model.py:9")}) == ["no-kernel"]
    assert rules(*WELL, asked, notes={"x": NodeNotes("model.py:7", "model.py:9", is_by_library=True)}) == []
    absent = node("x", "MatMul", "a", "a", device="/GPU:7")
    assert rules(*WELL, absent, notes={"x": NodeNotes("model.py:7", is_by_library=True)}) == ["no-such-device"]


def test_a_data_type_that_has_a_kernel():
    whole = (constant("i", (2, 2), dtype="DT_INT32"), node("x", "MatMul", "i", "i", device="/GPU:0", dtype="DT_INT32"))
    one = next(each for each in findings(*WELL, *whole) if each.rule == "no-kernel")
    assert (one.op, one.instead) == ("MatMul", "T=float32")
    assert advise_on_finding(one).instead.startswith(
        "Use T=float32, for which there is a kernel, or take it out of the scope"
    )


def test_a_label_that_is_no_node_s():
    (one,) = findings(*WELL, node("x", "Neg", "a", extra=LABEL.format("nope")))
    assert one == found.UnknownColocation("", "world", ("x",), "nope")
    assert findings(*WELL, node("x", "Neg", "a", extra=LABEL.format("mm"))) == []


def test_a_label_of_what_became_an_argument_is_tensorflow_s_own():
    wanted = "table/432"
    function = 'library { function { signature { name: "f" input_arg { name: "table_432" type: DT_FLOAT } } } }'
    assert findings(*WELL, node("x", "Neg", "a", extra=LABEL.format(wanted)), function) == []


def test_a_request_that_another_node_overrules():
    variable = node("v", "VariableV2", device="/CPU:0", extra='attr { key: "shape" value { shape { } } }')
    assign = node("set", "Assign", "v", "a", device="/GPU:0")
    (one,) = findings(*WELL, variable, assign)
    assert (one.rule, one.nodes, one.request, one.got) == ("request-overruled", ("set",), "/GPU:0", "CPU:0")
    assert "assign it outside" in advise_on_finding(one).instead
    (read,) = findings(*WELL, variable, node("same", "RefIdentity", "v", device="/GPU:0"))
    assert "tf.identity" in advise_on_finding(read).instead


def test_what_has_no_kernel_there_is_not_said_to_be_overruled():
    table = node("t", "HashTableV2", extra=_types("key_dtype", "value_dtype"))
    find = node("find", "LookupTableFindV2", "t", "keys", "a", device="/GPU:0", extra=_types("Tin", "Tout"))
    (one,) = findings(*WELL, table, constant("keys", (2,), dtype="DT_INT64"), find)
    assert (one.rule, one.nodes, one.request, one.got) == ("no-kernel", ("find",), "/GPU:0", "CPU:0")
    assert one.because == (
        "It requested /GPU:0, but LookupTableFindV2 has no kernel there for its data types; soft placement chose "
        "CPU:0 instead."
    )


def _types(key, value):
    return f'attr {{ key: "{key}" value {{ type: DT_INT64 }} }} attr {{ key: "{value}" value {{ type: DT_FLOAT }} }}'


def test_requests_of_one_line_are_one_finding():
    asked = [node(f"x{i}", "MatrixSquareRoot", "a", device=f"/GPU:{i}") for i in range(3)]
    notes = {f"x{i}": NodeNotes("model.py:7") for i in range(3)}
    kernel, absent = findings(*WELL, *asked, notes=notes)
    assert (kernel.rule, kernel.nodes, kernel.request) == ("no-kernel", ("x0", "x1"), "/GPU:0, /GPU:1")
    assert (absent.rule, absent.nodes, absent.request) == ("no-such-device", ("x2",), "/GPU:2")
    (three,) = findings(*asked, constant("a", (2, 3)), notes=notes, gpus=3)[:1]
    assert advise_on_finding(three).what == "3 nodes (x0, x1, x2) request /GPU:0 … /GPU:2 and run on CPU:0."


def test_an_op_without_a_kernel_is_not_where_the_program_requests_the_cpu():
    there = node("x", "MatrixSquareRoot", "mm", device="/GPU:0")
    (one,) = findings(*WELL, there, node("y", "MatMul", "x", "x", device="/GPU:0"))
    assert (one.rule, one.cost.copies) == ("no-kernel", 2)
    (one,) = findings(*WELL, there.replace("GPU:0", "CPU:0"), node("y", "MatMul", "x", "x", device="/GPU:0"))
    assert (one.rule, one.cost.copies, one.has_kernel) == ("host-round-trip", 2, False)
    assert advise_on_finding(one).why.endswith("requests the CPU for them, and there is no kernel for GPUs.")


def test_results_in_host_memory():
    (one,) = findings(*WELL, node("n", "Shape", "mm", extra='attr { key: "out_type" value { type: DT_INT32 } }'))
    assert (one.rule, one.level, one.ops) == ("host-memory", "note", "n (Shape)")


def test_the_gpus_of_a_cluster_are_not_those_of_the_program_itself():
    names = [f"/job:worker/replica:0/task:0/device:{name}" for name in ("CPU:0", "GPU:0", "GPU:1")]
    cluster = DeviceSet(make_device(name) for name in names)
    program = Program("run", "session", parse_text("\n".join(WELL[:2])), notes={"": {}})
    placed = Placed(place_program(program, cluster, shipped()))
    of_program = local_devices([("CPU", 1), ("GPU", 2)])
    (one,) = diagnose_result(Result("m.py", "2.21.0", "shipped", of_program, (placed,)), is_saved=False, environment={})
    assert one.devices == ("worker/0/GPU:1",)
    assert "CUDA_VISIBLE_DEVICES" in advise_on_finding(one).instead


def test_a_gpu_without_work():
    (one,) = findings(constant("a", (2, 3)), node("mm", "MatMul", "a", "a"))
    assert (one.devices, one.requests) == (("GPU:1",), 0)
    assert advise_on_finding(one).what == "GPU:1 is idle: no op requests it."
    (both,) = findings(constant("a", (2, 3)), node("s", "AsString", "a"))
    assert "MirroredStrategy" in advise_on_finding(both).instead
    assert advise_on_finding(both).what == "GPU:0 and GPU:1 are idle: no op requests them."
    moved = node("x", "AsString", "a", device="/GPU:1")
    idle = findings(constant("a", (2, 3)), node("mm", "MatMul", "a", "a"), moved)
    assert [(each.rule, getattr(each, "requests", None)) for each in idle] == [("no-kernel", None), ("idle-gpu", 1)]


def test_a_gpu_whose_work_the_program_requests_on_the_cpu():
    asked = node("mm", "MatMul", "a", "a", device="/CPU:0")
    held, other = findings(constant("a", (2, 3)), asked, notes={"mm": NodeNotes("model.py:7")})
    assert (held.devices, held.nodes, held.source, other.devices) == (("GPU:0",), ("mm",), "model.py:7", ("GPU:1",))
    assert advise_on_finding(held).what == "GPU:0 is idle: mm (MatMul), for which it has kernels, requests the CPU."
    by_library = NodeNotes("model.py:7", is_by_library=True)
    (both,) = findings(constant("a", (2, 3)), asked, notes={"mm": by_library})
    assert both.devices == ("GPU:0", "GPU:1")


def test_what_is_harmless_comes_last_whatever_it_costs():
    unknown, harmless = (
        found.LateSetting("", "", (), "x", "y", ""),
        HostMemory("", "", (), "", cost=StepCost(seconds=1.0)),
    )
    assert rank_findings([harmless, unknown]) == [unknown, harmless]


def test_ops_on_the_cpu_between_gpu_ops():
    chain = [*WELL, node("r", "MatrixSquareRoot", "mm"), node("y", "MatMul", "r", "r")]
    (one,) = findings(*chain)
    assert (one.rule, one.ops, one.device, one.cause) == ("detour-over-cpu", "r (MatrixSquareRoot)", "CPU:0", "kernel")
    assert rules(*chain[:-1]) == []


def test_what_holds_ops_on_the_cpu_decides_what_to_do():
    home, after = constant("home", (2, 3), device="/CPU:0"), node("y", "MatMul", "r", "r")
    (near,) = findings(*WELL, home, node("r", "Neg", "mm", extra=LABEL.format("home")), after)
    (called,) = findings(*WELL, node("r", "PyFunc", "mm", extra=PYTHON), after)
    (lacking,) = findings(*WELL, home, node("r", "MatrixSquareRoot", "mm", extra=LABEL.format("home")), after)
    assert [(one.rule, one.cause) for one in (near, lacking, called)] == [
        ("detour-over-cpu", "colocation"),
        ("detour-over-cpu", "kernel"),
        ("detour-over-cpu", "python"),
    ]
    assert advise_on_finding(near).instead.startswith("Make what it is colocated with, such as a variable, on the GPU")
    assert advise_on_finding(called).instead.startswith("Write it with TensorFlow's ops")


def test_a_refused_placement_says_which_wishes_clash():
    (one, *_) = findings(*WELL, node("x", "AsString", "a", device="/GPU:0"), soft=False)
    assert one.rule == "refused"
    assert "AsString" in one.because


@pytest.mark.parametrize(
    ("facts", "environment", "expected"),
    [
        ((fact("log flag", late="yes"),), {}, ["late-log-flag"]),
        ((fact("log flag", late=""), fact("log flag", late="yes")), {}, []),
        ((fact("log flag", late=""),), {"TF_CPP_MIN_LOG_LEVEL": "2"}, ["hidden-log"]),
        ((fact("log flag", late=""),), {"TF_CPP_MIN_LOG_LEVEL": "0"}, []),
        ((fact("log flag", late=""), fact("log level", level="3")), {}, ["hidden-log"]),
        ((fact("log flag", late=""), fact("log level", level="0")), {"TF_CPP_MIN_LOG_LEVEL": "2"}, []),
        ((fact("log level", level="3"),), {"TF_CPP_MIN_LOG_LEVEL": "2"}, []),
        ((fact("scope without device", requested="/device:GPU:7"),), {}, ["no-such-device"]),
        ((fact("scope lost", requested="/GPU:1", got="/CPU:0", node="x", op="Neg", leader="v"),), {}, ["lost-scope"]),
        ((fact("dataset scope", requested="/GPU:0", transformation="map()", ops="Mul"),), {}, ["dataset-scope"]),
        ((fact("layer scope", requested="/GPU:1", called="", called_at="", layer="d"),), {}, ["layer-outside-scope"]),
        ((fact("layer scope", requested="/GPU:0", called="", called_at="", layer="d"),), {}, []),
    ],
)  # fmt: skip
def test_what_the_running_program_showed(facts, environment, expected):
    assert rules(*WELL, facts=facts, environment=environment) == expected


LATE = "Virtual devices cannot be modified after being initialized"
GROWTH = "Memory growth cannot differ between GPU devices"
REFUSED = fact("setting refused", setting="logical devices", error=LATE, started="model.py:2")


def test_a_setting_that_ends_the_program():
    (one,) = findings(*WELL, facts=(REFUSED, fact("raised", error=LATE)))
    assert (one.rule, one.level, one.source, one.error) == ("refused-setting", "error", "model.py:3", LATE)
    assert "(here at model.py:2)" in advise_on_finding(one).why


def test_a_refused_setting_that_the_program_handles():
    (one,) = findings(*WELL, facts=(REFUSED, fact("raised", error="something else")))
    assert (one.rule, one.level, one.source) == ("late-setting", "warning", "model.py:3")
    assert "The program handles the error" in advise_on_finding(one).what


def test_memory_growth_for_one_gpu_of_two():
    facts = (fact("memory growth", at="model.py:2"), fact("raised", at="model.py:9", error=GROWTH))
    (one,) = findings(*WELL, facts=facts)
    assert (one.rule, one.level, one.source, one.set_at) == ("memory-growth", "error", "model.py:9", "model.py:2")
    assert format_failure(one) == f"memory growth is set for some of the GPUs, not for all (model.py:9): {GROWTH}"


def test_what_several_programs_share_is_said_once():
    one = result(*WELL, node("x", "MatMul", "a", "a", device="/GPU:7"))
    twice = Result("m.py", "2.21.0", "", one.devices, one.programs * 2)
    assert len(diagnose_result(twice, is_saved=False, environment={})) == 1


def test_every_finding_has_its_words():
    assert set(TITLES) == set(found.ALL_FINDINGS)
    assert len({kind.rule for kind in found.ALL_FINDINGS}) == len(found.ALL_FINDINGS)


def test_a_finding_is_a_problem_of_its_line():
    (one,) = findings(*WELL, facts=(fact("log flag", late="yes"),))
    told = describe_problem(one)
    assert (told.rule.id, told.level, told.source) == ("late-log-flag", "warning", "model.py:3")
    asked = {verdict.question: len(verdict.problems) for verdict in list_verdicts([one])}
    assert asked == {kind.rule: int(kind is found.LateLogFlag) for kind in found.ALL_FINDINGS}


@pytest.mark.parametrize(
    ("shapes", "is_compiled", "is_of_keras", "instead"),
    [(1, False, False, "Pass what varies as a tensor"), (6, False, False, "Give tf.function an input_signature"),
     (6, True, False, "Pad to a few shapes"), (1, False, True, "Make and compile the model once"),
     (6, False, True, "Pad what varies to a few lengths")],
)  # fmt: skip
def test_what_to_do_about_traces_depends_on_what_differs(shapes, is_compiled, is_of_keras, instead):
    said = advise_on_finding(found.Retraced("m.py:3", "step", (), 6, shapes, is_compiled, is_of_keras))
    assert said.instead.startswith(instead)
    assert said.what.startswith(f"step was traced {'and compiled by XLA ' if is_compiled else ''}6 times")


def test_functions_with_many_traces_are_told():
    def traced(count, kind):
        one = result(*WELL)
        placement = one.programs[0].placement
        again = Placed(replace(placement, program=replace(placement.program, kind=kind)))
        told = diagnose_result(replace(one, programs=(again,) * count), is_saved=False, environment={})
        return [(each.rule, each.times) for each in told if isinstance(each, found.Retraced)]

    assert (traced(4, "function"), traced(5, "function")) == ([], [("retraced", 5)])
    assert (traced(2, "compiled"), traced(3, "compiled")) == ([], [("retraced", 3)])
    assert traced(9, "dataset") == []


def test_functions_of_one_name_are_told_apart_by_their_owners():
    def traced(*owners):
        one = result(*WELL)
        placement = one.programs[0].placement
        programs = [replace(placement.program, kind="function", owner=owner) for owner in owners]
        made = tuple(Placed(replace(placement, program=program)) for program in programs)
        told = diagnose_result(replace(one, programs=made), is_saved=False, environment={})
        return [each.times for each in told if isinstance(each, found.Retraced)]

    assert traced(*range(1, 10)) == []
    assert traced(*[1] * 4, *[2] * 5) == [5]


def test_functions_of_one_name_are_told_apart_by_their_lines():
    def traced(*lines):
        one = result(*WELL)
        placement = one.programs[0].placement
        program = replace(placement.program, kind="function")
        programs = [replace(program, at=at, notes={"": {"mm": NodeNotes(f"{at}0")}}) for at in lines]
        made = tuple(Placed(replace(placement, program=program)) for program in programs)
        told = diagnose_result(replace(one, programs=made), is_saved=False, environment={})
        return [each.times for each in told if isinstance(each, found.Retraced)]

    assert traced(*(f"m.py:{line}" for line in range(9))) == []
    assert traced(*["m.py:1", "m.py:2"] * 5) == [5, 5]
