"""What is drawn of the memory over time."""

from __future__ import annotations

from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.program.program import NodeNotes
from simplace.views.figures.memory_bands import choose_bands
from simplace.views.figures.memory_chart import memory_chart
from tests.worlds import constant, node, place
from viz.area import Band
from viz.stack import add_up


def simulate(*nodes: str, gpus: int = 1) -> Schedule:
    return schedule_placement(place(*nodes, gpus=gpus), costs="flat")


def variable(name: str) -> str:
    """Write a variable of 16 KiB on the GPU."""
    shape = 'attr { key: "shape" value { shape { dim { size: 64 } dim { size: 64 } } } }'
    return node(name, "VarHandleOp", device="/gpu:0", extra=shape)


def list_notes(bands: tuple[Band, ...]) -> list[tuple[str, str]]:
    return [(band.title, band.note) for band in bands]


def test_a_panel_per_device_with_its_peak_and_what_holds_it_by_scope() -> None:
    schedule = simulate(
        constant("a", (256,), "/gpu:0"), node("net/one/b", "Neg", "a"), node("net/two/c", "Sqrt", "net/one/b"),
        node("net/two/d", "AddV2", "net/one/b", "net/two/c"),
    )  # fmt: skip
    chart = memory_chart(schedule)
    (area,) = chart.areas
    assert chart.title == "world: up to 3 KiB on GPU:0"
    assert area.title == "GPU:0: up to 3 KiB"
    assert area.heading.startswith("at the peak, ")
    assert area.heading.endswith(": 3 KiB")
    assert list_notes(area.bands) == [("input, constants", "1 KiB"), ("one", "1 KiB"), ("two", "1 KiB")]
    assert area.notes == ("largest: a 1 KiB",)


def test_a_device_that_holds_nothing_has_no_panel() -> None:
    chart = memory_chart(schedule_placement(place(constant("a", (4,), "/cpu:0")), costs="flat"))
    assert [area.title for area in chart.areas] == ["CPU:0: up to 16 B"]
    assert chart.description.startswith("Simulated memory of the graph world on CPU:0, GPU:0 and GPU:1: 1 node by")


def test_a_device_that_holds_next_to_nothing_is_named_not_drawn() -> None:
    chart = memory_chart(simulate(constant("a", (100_000,), "/gpu:0"), constant("b", (4,), "/cpu:0")))
    assert [area.title.partition(":")[0] for area in chart.areas] == ["GPU"]
    assert chart.caption.endswith("; not drawn: CPU:0 16 B")


def test_three_devices_alike_are_one_panel() -> None:
    nodes = [
        text
        for i in range(3)
        for text in (constant(f"a{i}", (256,), f"/gpu:{i}"), node(f"net/b_{i}", "Neg", f"a{i}", device=f"/gpu:{i}"))
    ]
    chart = memory_chart(simulate(*nodes, gpus=3))
    assert [area.title for area in chart.areas] == ["GPU:0 … GPU:2, 3 devices alike: up to 2 KiB (GPU:0 is drawn)"]


def test_the_bands_sum_up_to_the_peak_and_to_what_is_alive() -> None:
    branches = [node(f"s{i}/b", "Neg", "a") for i in range(9)]
    count = 'attr { key: "N" value { i: 9 } }'
    total = node("sum", "AddN", *(f"s{i}/b" for i in range(9)), extra=count)
    schedule = simulate(constant("a", (256,), "/gpu:0"), *branches, total)
    (use,) = [use for use in schedule.memory if use.peak]
    (found,) = choose_bands(schedule, [use])
    assert [band.title for band in found.bands if "other scopes" in band.title] == ["4 other scopes"]
    times = [time / 1e9 for time, _ in use.series]
    sums = [
        sum(next(size for at, size in reversed(band.points) if at <= time) for band in found.bands) for time in times
    ]
    assert sums == [size for _, size in use.series]
    assert max(sum(amounts) for _, amounts in add_up([band.points for band in found.bands])) == use.peak


def test_ops_without_scopes_and_their_gradients_are_told_by_the_line() -> None:
    placement = place(
        constant("a", (256,), "/gpu:0"), node("Exp_1", "Exp", "a"),
        node("gradient_tape/Exp_1/mul", "Mul", "Exp_1", "a"),
        node("end", "AddV2", "gradient_tape/Exp_1/mul", "Exp_1"),
        gpus=1, notes={"Exp_1": NodeNotes("src/model.py:7"), "gradient_tape/Exp_1/mul": NodeNotes("src/model.py:9")},
    )  # fmt: skip
    (area,) = memory_chart(schedule_placement(placement, costs="flat")).areas
    assert list_notes(area.bands)[:2] == [("input, constants", "1 KiB"), ("model.py:7", "2 KiB")]


def test_a_layer_has_one_look_on_all_devices_and_no_two_layers_share_one() -> None:
    nodes = [constant("a", (256,), "/gpu:0"), constant("z", (256,), "/gpu:1")]
    nodes += [node(f"s{i}/b", "Neg", "az"[i % 2], device=f"/gpu:{i % 2}") for i in range(8)]
    schedule = simulate(*nodes, gpus=2)
    uses = [use for use in schedule.memory if use.peak]
    looks = {
        (band.title, band.kind, band.index, band.pattern)
        for found in choose_bands(schedule, uses)
        for band in found.bands
        if band.kind == "GPU"
    }
    assert len({title for title, *_ in looks}) == len(looks) == len({tuple(look) for _, *look in looks})


def test_weights_stand_apart_from_the_state_of_the_optimizer() -> None:
    shape = 'attr { key: "_output_shapes" value { list { shape { dim { size: 64 } dim { size: 64 } } } } }'
    numbers = [constant(f"c{i}", (), "/gpu:0") for i in range(6)]
    schedule = simulate(
        variable("w"), variable("adam/m"), variable("adam/v"), *numbers, constant("x", (64, 64), "/gpu:0"),
        node("net/dense/read", "ReadVariableOp", "w", extra=shape),
        node("net/dense/MatMul", "MatMul", "x", "net/dense/read"),
        node("adam/apply", "ResourceApplyAdam", "w", "adam/m", "adam/v", *(f"c{i}" for i in range(6)),
             "net/dense/MatMul"),
    )  # fmt: skip
    (area,) = memory_chart(schedule).areas
    assert list_notes(area.bands)[:2] == [("weights", "16 KiB"), ("optimizer, metrics", "32 KiB")]
    assert [band.pattern for band in area.bands[:2]] == ["plain", "level"]


def test_what_is_copied_counts_for_what_made_it() -> None:
    schedule = simulate(
        constant("a", (1024,), "/cpu:0"), node("net/w", "Neg", "a", device="/cpu:0"),
        node("net/w/read", "Neg", "net/w", device="/cpu:0"), constant("axis", (1,), "/cpu:0", "DT_INT32"),
        node("end/out", "Sum", "net/w/read", "axis", device="/gpu:0"),
    )  # fmt: skip
    on_gpu = memory_chart(schedule).areas[-1]
    assert on_gpu.bands[0].title == "net"
    assert on_gpu.notes == ("largest: copy of w/read 4 KiB",)


def test_what_holds_nothing_at_the_peak_says_what_else_it_holds() -> None:
    schedule = simulate(
        constant("a", (256,), "/cpu:0"), constant("large", (4096,), "/cpu:0"), node("one/b", "Neg", "a"),
        node("two/shape", "Shape", "one/b"), node("two/c", "Neg", "large", "^two/shape"), gpus=0,
    )  # fmt: skip
    (area,) = memory_chart(schedule).areas
    assert list_notes(area.bands) == [("input, constants", "17 KiB"), ("one", "else 1 KiB"), ("two", "16 KiB")]
