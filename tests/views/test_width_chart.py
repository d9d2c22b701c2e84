"""What is drawn of how many ops run, and how many are ready, over time."""

from __future__ import annotations

from simplace.analysis.parallelism import DeviceParallelism
from simplace.analysis.schedule import schedule_placement
from simplace.placement.placement import Placement
from simplace.views.figures.parallelism_chart import parallelism_chart
from tests.worlds import CPU, GPU0, constant, node, place
from viz.area import Area, Band

MS = 1_000_000


def fan() -> Placement:
    """Place three ops that need the same constant, and one that needs all of them."""
    branches = [node(f"b{i}", "Neg", "a", device="/cpu:0") for i in range(3)]
    count = 'attr { key: "N" value { i: 3 } }'
    return place(
        constant("a", (4,), "/cpu:0"), *branches, node("sum", "AddN", "b0", "b1", "b2", device="/cpu:0", extra=count)
    )


def test_two_threads_run_two_of_three_ops_that_are_ready() -> None:
    (width,) = [w for w in schedule_placement(fan(), executor="textbook", costs="flat", inter_op=2).widths if w.running]
    assert width == DeviceParallelism(
        CPU,
        running=((0, 2), (MS, 1), (3 * MS, 0)),
        ready=((0, 3), (MS, 1), (3 * MS, 0)),
        working=((0, 2), (MS, 1), (3 * MS, 0)),
        mean=4 / 3,
    )
    assert (width.widest, width.most_ready, width.most_working) == (2, 3, 2)


def test_with_a_thread_for_each_the_graph_is_as_wide_as_it_is() -> None:
    (width,) = [w for w in schedule_placement(fan(), executor="textbook", costs="flat", inter_op=4).widths if w.running]
    assert (width.running, width.ready) == (((0, 3), (MS, 1), (2 * MS, 0)),) * 2


def test_a_gpu_runs_one_kernel_while_others_wait_for_its_stream() -> None:
    branches = [node(f"b{i}", "Neg", "a") for i in range(3)]
    placement = place(constant("a", (4,), "/gpu:0"), *branches, gpus=1)
    (width,) = [w for w in schedule_placement(placement, costs="flat").widths if w.device == GPU0]
    assert (width.widest, width.most_ready) == (1, 3)
    assert width.mean == 1.0


def test_what_runs_and_what_waits_are_two_panels_with_a_band_per_device_that_works() -> None:
    chart = parallelism_chart(schedule_placement(fan(), executor="textbook", costs="flat", inter_op=2))
    assert chart.areas == (
        Area(
            "ops that run",
            (Band("CPU:0", ((0.0, 2.0), (0.001, 1.0), (0.003, 0.0)), note="1.33, at most 2"),),
            heading="ops at once, where any runs",
            notes=("those that do a part of an op included",),
            line=((0.0, 2.0), (0.001, 1.0), (0.003, 0.0)),
            meaning="busy threads and streams: at most 2",
        ),
        Area(
            "ops that are ready and wait for a thread or stream",
            (Band("CPU:0", ((0.0, 1.0), (0.001, 0.0), (0.003, 0.0)), note="at most 1"),),
            heading="ops that wait at once",
        ),
    )
    assert chart.title == "world: up to 2 threads and streams busy at once"
    assert chart.caption.startswith("parallelism over 3 ms; ")
    assert "At most 2 ops at once on CPU:0; parallelism over 3 ms; textbook executor, " in chart.description


def test_many_devices_are_two_panels_as_well() -> None:
    nodes = [
        text
        for i in range(9)
        for text in (constant(f"a{i}", (4,), f"/gpu:{i}"), node(f"b{i}", "Neg", f"a{i}", device=f"/gpu:{i}"))
    ]
    running, waiting = parallelism_chart(schedule_placement(place(*nodes, gpus=9), costs="flat")).areas
    looks = [(band.title, band.index, band.pattern) for band in running.bands]
    assert looks == [(f"GPU:{i}", i, "upright" if i == 8 else "plain") for i in range(9)]
    assert len(waiting.bands) == 9


def test_nothing_that_takes_time_makes_an_empty_chart() -> None:
    chart = parallelism_chart(schedule_placement(place(constant("a", (4,))), costs="flat"))
    assert chart.areas == ()
    assert "Nothing takes time" in chart.description
