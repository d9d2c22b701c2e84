"""Figures in rows of devices: nothing overlaps, no line runs through anything, little is empty, devices keep order."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viz.packing.block import lay_out_block
from viz.packing.grid import Point, Rect, Size
from viz.packing.maze import OUTSIDE, Maze, list_ports
from viz.packing.measured_parts import MeasuredParts
from viz.packing.packed_page import _rate
from viz.packing.packing import measure_empty, pack_parts
from viz.packing.parts import Device, Parts, Wire
from viz.packing.plans import Plan, list_plans
from viz.packing.rows import RowLayout
from viz.packing.wiring import Wiring
from viz.style import STYLES

SIZES = st.tuples(st.sampled_from((10, 14, 18, 24)), st.sampled_from((4, 6, 8)))


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    """Draw devices, some in tasks, of a few boxes each, and lines: tagged between devices, plain within one."""
    devices = []
    tasks = draw(st.sampled_from(("", "ab")))
    for i in range(draw(st.integers(1, 4))):
        nodes = {f"{i}.{k}": draw(SIZES) for k in range(draw(st.integers(1, 6)))}
        devices.append(Device(f"d{i}", (9, 5), nodes, tasks and tasks[min(i, 1)]))
    names = [node for device in devices for node in device.nodes]
    home = {node: device.id for device in devices for node in device.nodes}
    wires = []
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names))
    for one, other in draw(st.lists(pairs, max_size=6, unique=True)):
        if home[one] != home[other]:
            wires.append(Wire(one, other, (12, 6), draw(st.booleans()), draw(st.booleans())))
        elif one < other:
            wires.append(Wire(one, other))
    if draw(st.booleans()):
        wires += [Wire(*pair) for device in devices for pair in pairwise(device.nodes)]
    bars = {"bar": (20, 6)} if draw(st.booleans()) else {}
    wires += [Wire(names[0], "bar")] if bars else []
    frames = {device.frame: (20, 3) for device in devices if device.frame}
    return Parts(tuple(devices), tuple(wires), bars, frames)


def rate(size: Size) -> float:
    return float(size[0] * size[1])


def pack(made: Parts, is_tight: bool = False) -> Wiring:
    return pack_parts(made, rate, lambda _: (0, 0), is_tight=is_tight)


def run_along(path: list[Point]) -> set[Point]:
    found: set[Point] = set()
    for (x, y), (u, v) in pairwise(path):
        assert x == u or y == v, "lines run straight"
        found |= {(a, b) for a in range(min(x, u), max(x, u) + 1) for b in range(min(y, v), max(y, v) + 1)}
    return found


def ends_of(made: Parts, wiring: Wiring, key: tuple[int, int]) -> list[Rect]:
    found, wire, home = wiring.arrangement, made.wires[key[0]], made.home
    one = found.devices[home[wire.source]] if wire.from_device else found.nodes[wire.source]
    other = found.devices[home[wire.target]] if wire.to_device else found.nodes[wire.target]
    if wire.tag is None:
        return [one, other]
    return [one, found.tags[key[0]]] if key[1] == 0 else [found.tags[key[0]], other]


@settings(max_examples=12, deadline=None)
@given(parts(), st.booleans())
def test_nothing_overlaps_and_each_box_is_in_its_device(made: Parts, is_tight: bool) -> None:
    found = pack(made, is_tight).arrangement
    for one, other in combinations(found.solid, 2):
        assert not one.overlaps(other)
    for one, other in combinations([*found.devices.values(), *found.tags.values()], 2):
        assert not one.overlaps(other)
    for device in made.devices:
        room = found.devices[device.id]
        inside = [found.titles[device.id], *(found.nodes[node] for node in device.nodes)]
        inside_task = [(found.frames[device.frame], room)] if device.frame else []
        for outer, inner in [*((room, box) for box in inside), *inside_task]:
            assert outer.holds((inner.left, inner.top))
            assert outer.holds((inner.right, inner.bottom))


@settings(max_examples=12, deadline=None)
@given(parts(), st.booleans())
def test_no_line_runs_through_a_title_a_box_a_label_or_another_device(made: Parts, is_tight: bool) -> None:
    wiring = pack(made, is_tight)
    found, home = wiring.arrangement, made.home
    assert {place for place, _ in wiring.lines} == set(range(len(made.wires)))
    for key, path in wiring.lines.items():
        points, ends = run_along(path), ends_of(made, wiring, key)
        assert [end.holds(point) for end, point in zip(ends, (path[0], path[-1]), strict=True)] == [True, True]
        wire = made.wires[key[0]]
        own = {found.devices[home[node]] for node in (wire.source, wire.target) if node in home}
        walls = [box for box in found.solid if box not in ends]
        walls += [box for box in found.devices.values() if box not in own]
        assert not any(wall.holds(point) for wall in walls for point in points)


@settings(max_examples=12, deadline=None)
@given(parts())
def test_devices_stand_in_their_order_row_by_row(made: Parts) -> None:
    found = pack(made).arrangement
    for one, other in combinations([found.devices[device.id] for device in made.devices], 2):
        assert other.top > one.bottom or (other.left > one.right and other.top <= one.bottom <= other.bottom)


@settings(max_examples=30, deadline=None)
@given(parts())
def test_devices_fill_the_size_that_is_wished(made: Parts) -> None:
    for plan in list_plans(made, is_tight=True):
        wide, high = RowLayout(made, plan).measure()
        filled = RowLayout(made, plan).place((wide + 20, high + 20)).size
        assert (filled[0], high + 20 - filled[1] in range(len(plan.rows))) == (wide + 20, True)


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_of_devices_that_share_data_less_than_a_third_is_empty(count: int) -> None:
    nodes = {"forward": (20, 6), "gradients": (20, 6)}
    devices = [Device("cpu", (9, 5), {"input": (20, 8), "update": (20, 6)})]
    devices += [Device(f"gpu{i}", (9, 5), {f"{name}{i}": size for name, size in nodes.items()}) for i in range(count)]
    wires = [Wire(f"forward{i}", f"gradients{i}") for i in range(count)]
    wires += [Wire("input", f"forward{i}", (12, 6)) for i in range(count)]
    wires += [Wire(f"gradients{i}", "update", (12, 6)) for i in range(count)]
    wiring = pack(Parts(tuple(devices), tuple(wires)))
    assert (wiring.shared, measure_empty(wiring.arrangement) < 1 / 3) == (0, True)


def test_a_chain_is_straight() -> None:
    block = lay_out_block({"a": (10, 4), "b": (20, 4), "c": (14, 4)}, [("a", "b"), ("b", "c")], down=True)
    assert {rect.middle[0] for rect in block.rects.values()} == {10.0}
    assert [block.rects[name].top for name in "abc"] == [0, 8, 16]


@pytest.mark.parametrize(
    ("down", "places"), [(True, [(0, 0), (0, 8), (15, 0), (15, 8)]), (False, [(0, 0), (14, 0), (0, 9), (14, 9)])]
)
def test_a_long_chain_is_broken_into_columns_that_go_down_or_lines_that_go_right(
    down: bool, places: list[Point]
) -> None:
    block = lay_out_block(dict.fromkeys("abcd", (10, 4)), list(pairwise("abcd")), down, folds=2)
    assert [(block.rects[name].left, block.rects[name].top) for name in "abcd"] == places


def test_boxes_so_near_that_their_stubs_would_overlap_are_joined_by_a_straight_line() -> None:
    one, other = Rect(5, 20, 15, 26), Rect(18, 10, 40, 40)
    maze = Maze(60, 50, [one, other], [])
    path = maze.route(list_ports(one), list_ports(other, off_middle=0.05), frozenset({OUTSIDE}))
    assert path == [(15, 23), (18, 23)]


def test_what_reads_nothing_stands_before_its_first_reader() -> None:
    chain = [("a", "b"), ("b", "c"), ("c", "d"), ("late", "d")]
    block = lay_out_block(dict.fromkeys(("a", "b", "c", "d", "late"), (10, 4)), chain, down=True)
    assert block.rects["late"].top == block.rects["c"].top


def test_a_line_goes_around_what_is_in_its_way() -> None:
    one, wall, other = Rect(5, 20, 15, 26), Rect(25, 10, 30, 40), Rect(45, 20, 55, 26)
    maze = Maze(60, 50, [one, wall, other], [])
    path = maze.route(list_ports(one), list_ports(other), frozenset({OUTSIDE}))
    assert path is not None
    assert not any(wall.holds(point) for point in run_along(path))
    assert len(path) <= 6


def test_a_line_keeps_off_the_rims_of_devices() -> None:
    """A line around a device, to what is behind it, runs some way off its rim, and not right beside it."""
    one, other, device = Rect(20, 3, 24, 7), Rect(20, 43, 24, 47), Rect(12, 12, 36, 38)
    path = Maze(60, 60, [one, other], [device]).route(list_ports(one), list_ports(other), frozenset({OUTSIDE}))
    assert path is not None
    near = Rect(device.left - 1, device.top - 1, device.right + 1, device.bottom + 1)
    assert not any(near.holds(point) for point in run_along(path))


def test_a_line_keeps_off_boxes() -> None:
    one, other, box = Rect(2, 8, 6, 12), Rect(54, 8, 58, 12), Rect(12, 10, 48, 20)
    path = Maze(60, 40, [one, other, box], []).route(list_ports(one), list_ports(other), frozenset({OUTSIDE}))
    assert path is not None
    near = Rect(box.left, box.top - 1, box.right, box.bottom + 1)
    assert not any(near.holds(point) for point in run_along(path))


@pytest.mark.parametrize(
    ("boxes", "kept_off"),
    [
        pytest.param((Rect(2, 18, 6, 24), Rect(56, 18, 58, 24)), Rect(10, 19, 52, 21), id="beside it"),
        pytest.param((Rect(44, 4, 52, 8), Rect(44, 30, 52, 34)), Rect(48, 20, 52, 20), id="at its head"),
    ],
)
def test_a_line_keeps_off_another_one(boxes: tuple[Rect, Rect], kept_off: Rect) -> None:
    maze = Maze(60, 50, boxes, [])
    maze.add(0, [(10, 20), (52, 20)])
    path = maze.route(list_ports(boxes[0]), list_ports(boxes[1]), frozenset({OUTSIDE}))
    assert path is not None
    assert not any(kept_off.holds(point) for point in run_along(path))


def test_a_line_without_a_way_is_told() -> None:
    one, other = Rect(5, 5, 9, 9), Rect(30, 5, 34, 9)
    walls = [one, other, Rect(20, 0, 21, 19)]
    assert Maze(40, 20, walls, []).route(list_ports(one), list_ports(other), frozenset({OUTSIDE})) is None


def test_rows_are_of_about_one_length() -> None:
    devices = tuple(Device(f"d{i}", (9, 5), {}) for i in range(4))
    rows = {plan.rows for plan in list_plans(Parts(devices))}
    assert rows == {
        ((0, 1, 2, 3),), ((0, 1), (2, 3)), ((0, 1), (2,), (3,)), ((0,), (1,), (2,), (3,)), ((0,), (1, 2, 3)),
        ((0,), (1, 2), (3,)),
    }  # fmt: skip


def test_tasks_stand_below_or_beside_each_other_but_never_in_each_other() -> None:
    devices = tuple(Device(f"d{i}", (9, 5), {}, "ab"[i // 2]) for i in range(4))
    rows = {plan.rows for plan in list_plans(Parts(devices, frames={"a": (9, 3), "b": (9, 3)}))}
    assert rows == {((0, 1, 2, 3),), ((0, 1), (2, 3)), ((0, 1), (2,), (3,)), ((0,), (1,), (2,), (3,))}


def test_text_below_what_a_slide_shows_counts_more_than_an_empty_place() -> None:
    sizes = Parts((Device("d", (9, 5), {"n": (10, 4)}),))
    measured = MeasuredParts(sizes, (((), (0.0, 0.0)),), (), 0.0)
    legible, small = (_rate(measured, STYLES["slide"], size) for size in ((80, 40), (160, 90)))
    assert small > 4 * legible


@pytest.mark.parametrize(("width", "tag", "strips"), [(40, 12, 1), (20, 30, 2)])
def test_tags_between_two_rows_share_a_strip_where_that_makes_no_row_wider(width: int, tag: int, strips: int) -> None:
    devices = tuple(Device(name, (9, 5), {f"{name}0": (width, 6)}) for name in "abc")
    wires = tuple(Wire(*ends, (tag, 6)) for ends in (("a0", "c0"), ("b0", "c0"), ("c0", "a0"), ("a0", "b0")))
    found = RowLayout(Parts(devices, wires), Plan(((0, 1), (2,)), (True, True))).place()
    assert len({found.tags[place].top for place in range(3)}) == strips
