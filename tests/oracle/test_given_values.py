"""Integers and bools that are arguments of the first call: loops run, and branches are taken, as they say."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.analysis.schedule import schedule_placement
from simplace.executor.control_flow import ControlFlow
from simplace.partition.shapes import TensorSizes
from simplace.views.text.summary import describe_given_shapes

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]


def simulate_calls(folder: Path, text: str) -> dict[str, ControlFlow]:
    """Return the loops and branches of the functions that a program calls, by their names."""
    script = folder / "model.py"
    script.write_text("import tensorflow as tf\n" + dedent(text))
    result = simplace.place(str(script), "gpu:1")
    assert result.failure is None
    return {one.name: schedule_placement(one.placement, costs="modelled").flow for one in result}


def loops(flow: ControlFlow) -> list[tuple[int, str]]:
    return [(loop.trips, loop.how) for loop in flow.loops]


def branches(flow: ControlFlow) -> list[tuple[int, str]]:
    return [(branch.taken, branch.how) for branch in flow.branches]


def test_the_first_call_decides(tmp_path: Path) -> None:
    found = simulate_calls(
        tmp_path,
        """\
        @tf.function
        def inner(x, n):
            return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, tf.sin(x)), [tf.zeros_like(n), x])[1]
        @tf.function
        def looped(x, n):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x
                for _ in tf.range(n):
                    y = tf.sin(y)
            return tape.gradient(y, x)
        @tf.function
        def called(x, n):
            return inner(x, n * 2)
        @tf.function
        def branched(x, flag):
            return tf.sin(x) if flag else tf.cos(x)
        @tf.function
        def by_vector(x, pair):
            return tf.cond(pair[0] > pair[1], lambda: tf.sin(x), lambda: tf.cos(x))
        x = tf.ones([4])
        for n in (50, 3):
            looped(x, tf.constant(n))
            called(x, tf.constant(n, tf.int64))
        for flag in (False, True):
            branched(x, tf.constant(flag))
            by_vector(x, tf.constant([1, 2 - 2 * int(flag)]))
        """,
    )
    assert {name: loops(flow) for name, flow in found.items()} == {
        "looped": [(50, "called")] * 2, "called": [(100, "called")], "branched": [], "by_vector": []
    }  # fmt: skip
    assert {name: branches(flow) for name, flow in found.items() if flow.branches} == {
        "branched": [(0, "called")], "by_vector": [(0, "called")]
    }  # fmt: skip


def test_what_is_computed_or_captured_is_an_argument_as_well(tmp_path: Path) -> None:
    found = simulate_calls(
        tmp_path,
        """\
        with tf.device("GPU:0"):
            n, flag = tf.constant([3, 4], tf.int64) + 2, tf.constant(1.0) > 2.0
        @tf.function
        def step(x):
            for _ in tf.range(n[1]):
                x = tf.sin(x)
            return tf.sin(x) if flag else tf.cos(x)
        step(tf.ones([4]))
        """,
    )
    assert (loops(found["step"]), branches(found["step"])) == ([(6, "called")], [(0, "called")])


def test_no_value_is_read_of_a_float_or_a_long_vector(tmp_path: Path) -> None:
    found = simulate_calls(
        tmp_path,
        """\
        @tf.function
        def step(x, long, flags):
            i = 0
            while i < long[0]:
                i += 1
            while tf.cast(i, tf.float32) < x:
                i += 1
            return i if flags[0] else -i
        step(tf.constant(4.0), tf.range(17), tf.fill([2, 2], False)[0])
        """,
    )
    assert loops(found["step"]) == [(10, "assumed")] * 2
    assert branches(found["step"]) == [(0, "called")]


def test_sizes_follow_from_the_first_call(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(
        dedent("""\
        import tensorflow as tf
        @tf.function
        def step(x, n):
            kept = tf.TensorArray(tf.float32, size=n)
            for i in tf.range(n):
                kept = kept.write(i, x[i])
            hot = tf.one_hot(tf.range(n), 8, name="hot")
            return tf.random.normal([n, 8], name="random") + hot, tf.identity(kept.stack(), name="stacked"), x[:n]
        @tf.function
        def fixed(x, n):
            return x + tf.cast(n, tf.float32)
        for n in (16, 4):
            step(tf.ones([64, 8]), tf.constant(n))
            fixed(tf.ones([n]), tf.constant(n))
        """)
    )
    result = simplace.place(str(script), "gpu:1")
    step, *others = result
    sizes, graph = TensorSizes(step.placement.placed), step.placement.graph
    names = ("hot", "random/RandomStandardNormal", "stacked", "strided_slice")
    assert {name: sizes.shape(graph.ids[name], 0) for name in names} == dict.fromkeys(names, (16, 8))
    assert describe_given_shapes(step) == (
        "sizes that the graph leaves open follow from integers among the arguments of the first call"
    )
    assert [describe_given_shapes(one) for one in others] == ["", ""]
    assert [one.placement.program.given_values for one in result] == [{1: 16}, {1: 16}, {1: 4}]
