"""What is drawn of how many ops run, and how many are ready, over time."""

from __future__ import annotations

from simplace.analysis.parallelism import DeviceParallelism
from simplace.analysis.schedule import schedule_placement
from simplace.placement.placement import Placement
from simplace.views.figures.parallelism_chart import KEY, parallelism_chart
from tests.worlds import CPU, GPU0, constant, node, place

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


def test_the_chart_has_a_panel_per_device_that_works() -> None:
    chart = parallelism_chart(schedule_placement(fan(), executor="textbook", costs="flat", inter_op=2))
    (area,) = chart.areas
    assert area.group.title == "CPU:0: 1.33 ops at once on average"
    assert area.notes == (
        "at most 2 ops at once",
        "at most 3 running or ready",
        "at most 2 busy threads and streams",
    )
    assert (area.points, chart.key, chart.title) == (
        ((0.0, 2.0), (0.001, 1.0), (0.003, 0.0)),
        KEY,
        "world: parallelism over 3 ms",
    )
    assert "at most 2 ops at once on CPU:0; textbook executor, inter-op 2 a device" in chart.description


def test_nothing_that_takes_time_makes_an_empty_chart() -> None:
    chart = parallelism_chart(schedule_placement(place(constant("a", (4,))), costs="flat"))
    assert (chart.areas, chart.key) == ((), ())
    assert "nothing takes time" in chart.description
