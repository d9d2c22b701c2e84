"""Whether a step is faster on other devices, and with which batch it is faster."""

from __future__ import annotations

from dataclasses import replace

from simplace.analysis.batch_memory import BatchMemory
from simplace.analysis.device_comparison import compare_devices, count_examples, find_batch, scale_batch
from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.program.program import NodeNotes
from simplace.views.text.device_comparison_text import describe_comparison
from tests.worlds import constant, node, place

WIDTH = 1024


def simulate(gpus: int, batch: int = 16, layers: int = 4, *, batch_known: bool = True) -> Schedule:
    """Simulate a stack of products; with two GPUs each does half of the batch, and the CPU joins the halves."""
    dims = f"dim {{ size: {batch} }} dim {{ size: {WIDTH} }}" if batch_known else ""
    shape = f'attr {{ key: "shape" value {{ shape {{ {dims} }} }} }}'
    notes = {}
    nodes = [node("x", "Placeholder", device="/CPU:0", extra=shape)]
    for gpu in range(gpus):
        own = "x"
        if gpus > 1:
            sizes = 'attr { key: "Index" value { type: DT_INT32 } }'
            at = [constant(f"{part}{gpu}", (2,), dtype="DT_INT32") for part in ("begin", "size")]
            nodes += [*at, node(f"half{gpu}", "Slice", "x", f"begin{gpu}", f"size{gpu}", device="/CPU:0", extra=sizes)]
            own = f"half{gpu}"
            notes[own] = NodeNotes(shapes=((batch // 2, WIDTH),))
        nodes.append(constant(f"w{gpu}", (WIDTH, WIDTH), device=f"/GPU:{gpu}"))
        for layer in range(layers):
            name = f"mm{gpu}_{layer}"
            nodes.append(node(name, "MatMul", own, f"w{gpu}", device=f"/GPU:{gpu}"))
            notes[name] = NodeNotes(shapes=((batch // gpus, WIDTH),))
            own = name
    notes |= {"x": NodeNotes(shapes=((batch, WIDTH),) if batch_known else ())}
    return schedule_placement(place(*nodes, gpus=gpus, notes=notes))


def test_a_step_with_a_larger_batch_is_that_of_a_program_with_that_batch() -> None:
    for gpus in (1, 2):
        scaled = scale_batch(BatchMemory.of(simulate(gpus), gpus), 8)
        assert scaled.trace.makespan == simulate(gpus, batch=128).trace.makespan


def test_a_second_gpu_is_worth_it_from_a_larger_batch_on() -> None:
    found = compare_devices(simulate(1, layers=60), simulate(2, layers=60))
    assert [one.factor for one in found.trials] == [2**i for i in range(len(found.trials))]
    assert [found.change(one) < 0 for one in found.trials] == [False] * (len(found.trials) - 1) + [True]
    least = found.worth_from
    assert least is not None
    assert least == found.trials[-1]
    own, other = (simulate(gpus, batch=16 * least.factor, layers=60).trace.makespan for gpus in (1, 2))
    assert (least.before, least.after) == (own, other)
    assert f"but from one of {16 * least.factor:,} on" in describe_comparison(found)


def test_a_second_gpu_that_does_nothing_is_never_worth_it() -> None:
    found = compare_devices(simulate(1), simulate(1))
    assert found.worth_from is None
    assert found.trials[-1].factor == 256
    assert describe_comparison(found).endswith("+0%: not faster, nor with any batch up to 4,096 examples (+0%)")


def test_without_a_batch_nothing_larger_is_tried() -> None:
    found = compare_devices(simulate(1, batch_known=False), simulate(1, batch_known=False))
    assert len(found.trials) == 1
    assert "other batches were not tried, since nothing that the program is given has a first" in describe_comparison(
        found
    )


def test_elements_are_counted_on_the_branch_that_is_taken() -> None:
    outputs = """attr { key: "output_types" value { list { type: DT_FLOAT } } }
        attr { key: "output_shapes" value { list { shape { dim { size: 32 } dim { size: 4 } } } } }"""
    notes = {name: NodeNotes(shapes=((32, 4),)) for name in ("then", "else0", "else1")}
    placed = place(
        node("p", "Placeholder", dtype="DT_BOOL", device="/CPU:0"),
        node("it", "Placeholder", dtype="DT_RESOURCE", device="/CPU:0"),
        node("s", "Switch", "it", "p", dtype="DT_RESOURCE", device="/CPU:0"),
        node("then", "IteratorGetNext", "s:1", extra=outputs, device="/CPU:0"),
        node("else0", "IteratorGetNext", "s", extra=outputs, device="/CPU:0"),
        node("else1", "IteratorGetNext", "s", extra=outputs, device="/CPU:0"),
        notes=notes,
    )
    taken = {branch: schedule_placement(placed, branches={"p": branch}) for branch in (0, 1)}
    assert {branch: count_examples(find_batch(one)) for branch, one in taken.items()} == {0: 64, 1: 32}


def test_labels_on_the_cpu_are_of_the_examples_on_a_gpu() -> None:
    def given(name: str, device: str) -> str:
        dims = f"dim {{ size: 16 }} dim {{ size: {WIDTH} }}"
        return node(name, "Placeholder", device=device, extra=f'attr {{ key: "shape" value {{ shape {{ {dims} }} }} }}')

    for gpus in (1, 2):
        inputs = [given(f"x{i}", f"/GPU:{i}") for i in range(gpus)] + [given(f"y{i}", "/CPU:0") for i in range(gpus)]
        work = [node(f"sum{i}", "AddV2", f"x{i}", f"y{i}", device=f"/GPU:{i}") for i in range(gpus)]
        schedule = schedule_placement(place(*inputs, *work, gpus=gpus))
        assert count_examples(BatchMemory.of(schedule)) == 16 * gpus


def test_a_gain_is_told_with_the_gpus_that_it_takes_and_whether_it_is_sure() -> None:
    found = compare_devices(simulate(1, batch=1 << 14, layers=60), simulate(2, batch=1 << 14, layers=60))
    gain = 1 / (1 + found.change(found.trials[0]))
    assert 1 < gain < 2
    told, said = describe_comparison(found), f": faster as it is, {gain:.2f} times with 2 times the GPUs"
    assert found.find_change_error(found.trials[0]) > -found.change(found.trials[0])
    assert told.endswith(f"{said}, but by less than the error")
    sure = replace(found, trials=(replace(found.trials[0], quotient_error=0.01),))
    assert describe_comparison(sure).endswith(said)
