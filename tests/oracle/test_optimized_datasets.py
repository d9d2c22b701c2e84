"""Functions of datasets that tf.data fuses or splits where a program turns that on, as TensorFlow logs them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.checks.verdicts import of_agreement
from simplace.views.text.summary import agreement_line, coverage_line

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]
MACHINES = pytest.mark.parametrize("machine", ["cpu:1", "cpu:1,gpu:1"])
# `show` prints the elements of a pipeline, and of the same one made by the function of a flat_map.
HEAD = """\
    import tensorflow as tf
    D, A = tf.data.Dataset, tf.data.AUTOTUNE
    def on_gpu(x):
        with tf.device("/GPU:0"):
            return x * 2
    def above(x):
        with tf.device("/GPU:0"):
            return tf.cast(x, tf.float32) > 3.5
    def listed(rows):
        return [[part.numpy().tolist() for part in tf.nest.flatten(each)] for each in rows]
    def show(make, *names):
        options = tf.data.Options()
        for name in names:
            setattr(options.experimental_optimization, name, True)
        print(listed(make(D.range(6)).with_options(options)))
        print(listed(D.range(2).flat_map(lambda i: make(D.range(i + 3))).with_options(options)))
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Write a program given as text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda text: Path("model.py").write_text(dedent(text))


def check(write, capfd, machine: str, text: str) -> tuple[list[str], Counter[str]]:
    """Check a program of which all must agree, and all be accounted for; return what it prints and its programs."""
    write(HEAD + text)
    result = simplace.check("model.py", machine)
    assert (result.agrees, result.coverage.missing) == (True, ()), agreement_line(result) + coverage_line(result)
    assert "not compared" not in agreement_line(result)
    assert [each for each in of_agreement(result) if each.skipped] == []
    return capfd.readouterr().out.splitlines(), Counter(placed.placement.program.name for placed in result)


@MACHINES
def test_maps_that_follow_each_other_are_fused(write, capfd, machine: str) -> None:
    printed, programs = check(write, capfd, machine, """\
    @tf.function
    def helper(x):
        return x * 3 if x > 1 else x - 1
    show(lambda rows: rows.map(lambda x: (x, x + 1)).map(lambda a, b: a + b).map(helper), "map_fusion")
    show(lambda rows: rows.map(on_gpu).map(lambda x: x + 1).batch(2), "map_fusion")
    """)  # fmt: skip
    assert printed == [
        "[[0], [9], [15], [21], [27], [33]]", "[[0], [9], [15], [0], [9], [15], [21]]",
        "[[[1, 3]], [[5, 7]], [[9, 11]]]", "[[[1, 3]], [[5]], [[1, 3]], [[5, 7]]]",
    ]  # fmt: skip
    name = "Dataset_map_lambda"
    assert programs[f"map_fusion_funcs/map_fusion_funcs/{name}/{name}/Dataset_map_helper"] == 2
    assert programs[f"map_fusion_funcs/Dataset_map_on_gpu/{name}"] == 2
    assert programs["Dataset_map_on_gpu"] == programs[name] == 0


@MACHINES
def test_filters_that_follow_each_other_are_fused(write, capfd, machine: str) -> None:
    printed, programs = check(write, capfd, machine, """\
    def make(rows):
        return rows.filter(lambda x: x > 0).filter(above).filter(lambda x: x % 2 == 0)
    show(make, "filter_fusion")
    show(lambda rows: rows.filter(lambda x: x > 1).filter(lambda x: x != 3), "filter_fusion")
    """)  # fmt: skip
    assert printed == ["[[4]]", "[]", "[[2], [4], [5]]", "[[2], [2]]"]
    assert sum(count for name, count in programs.items() if name.startswith("fused_predicate")) >= 2


@MACHINES
@pytest.mark.parametrize(
    "pipeline",
    [
        # TensorFlow fuses the filters of the pipeline first, those of functions in the order of its map of functions.
        "rows.filter(lambda x: x > 3).filter(lambda x: x < 9).flat_map(even)",
        "rows.flat_map(even).flat_map(small)",
        "rows.flat_map(small).flat_map(even)",
        "rows.flat_map(lambda i: even(i).flat_map(small)).flat_map(even)",
    ],
)
def test_all_filters_call_the_first_that_is_fused(write, capfd, machine: str, pipeline: str) -> None:
    printed, programs = check(write, capfd, machine, f"""\
    options = tf.data.Options()
    options.experimental_optimization.filter_fusion = True
    rows = D.range(16)
    def even(i):
        return D.range(i).filter(lambda x: x > 1).filter(lambda x: x % 2 == 0)
    def small(i):
        return D.range(i).filter(lambda x: x > 2).filter(lambda x: x < 5)
    print(listed({pipeline}.with_options(options)))
    """)  # fmt: skip
    assert programs["fused_predicate"] == 1
    run = subprocess.run([sys.executable, "model.py"], capture_output=True, text=True, check=True)
    assert printed == run.stdout.splitlines()


@MACHINES
def test_a_map_that_the_filter_after_it_is_fused_with(write, capfd, machine: str) -> None:
    printed, programs = check(write, capfd, machine, """\
    def draw(x):  # so that tf.data does not make the map parallel
        return on_gpu(x) + tf.random.uniform([], 0, 1, tf.int64)
    show(lambda rows: rows.map(draw).filter(above), "map_and_filter_fusion")
    """)  # fmt: skip
    assert printed == ["[[4], [6], [8], [10]]", "[[4], [4], [6]]"]
    assert {"fused_map_and_filter_function", "GetLast", "DropLast"} <= programs.keys()


@MACHINES
def test_all_three_together_in_what_a_function_walks_through(write, capfd, machine: str) -> None:
    printed, _ = check(write, capfd, machine, """\
    def make(rows):
        rows = rows.map(lambda x: x).map(lambda x: x + 1).filter(lambda x: x > 1).filter(lambda x: x > 2)
        return rows.map(lambda x: x * 2).filter(lambda x: x < 12)
    names = ("map_fusion", "filter_fusion", "map_and_filter_fusion")
    show(make, *names)
    options = tf.data.Options()
    for name in names:
        setattr(options.experimental_optimization, name, True)
    @tf.function
    def total():
        sum = tf.constant(0, tf.int64)
        for x in make(D.range(6)).with_options(options):
            sum += x
        return sum
    print(int(total()))
    """)  # fmt: skip
    assert printed == ["[[6], [8], [10]]", "[[6], [6], [8]]", "24"]


@MACHINES
def test_what_captures_something_is_not_fused(write, capfd, machine: str) -> None:
    printed, programs = check(write, capfd, machine, """\
    v = tf.Variable(2, dtype=tf.int64)
    show(lambda rows: rows.map(lambda x: x + v).map(lambda x: x * 2), "map_fusion")
    """)  # fmt: skip
    assert printed == ["[[4], [6], [8], [10], [12], [14]]", "[[4], [6], [8], [4], [6], [8], [10]]"]
    assert not any(name.startswith("map_fusion_funcs") for name in programs)


@MACHINES
def test_what_must_be_deterministic_is_split_or_runs_in_order(write, capfd, machine: str) -> None:
    printed, programs = check(write, capfd, machine, """\
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    v = tf.Variable(2, dtype=tf.int64)
    def draw(x):
        return tf.random.uniform([], 0, 1, tf.int64) + x, x
    def draw_in_turn(x):
        return tf.cond(x > 1, lambda: x + tf.random.uniform([], 0, 1, tf.int64), lambda: x)
    show(lambda rows: rows.map(draw, A).prefetch(1))
    show(lambda rows: rows.map(draw, 2).batch(4))
    show(lambda rows: rows.map(draw_in_turn, 2))
    show(lambda rows: rows.map(lambda x: x + v, A).batch(4, num_parallel_calls=2).prefetch(1))
    show(lambda rows: rows.interleave(lambda i: D.range(i).map(draw, 2), num_parallel_calls=2))
    """)  # fmt: skip
    pairs = "[[0, 0], [1, 1], [2, 2]"
    assert printed[:2] == [f"{pairs}, [3, 3], [4, 4], [5, 5]]", f"{pairs}, [0, 0], [1, 1], [2, 2], [3, 3]]"]
    assert printed[4] == "[[0], [1], [2], [3], [4], [5]]"
    assert printed[7] == "[[[2, 3, 4]], [[2, 3, 4, 5]]]"
    assert programs["Dataset_map_draw_first_split"] == programs["Dataset_map_draw_second_split"] == 6
    assert programs["Dataset_map_draw_in_turn"] == 2  # an If gives a list of tensors, which TensorFlow does not split


@MACHINES
def test_a_dataset_that_a_strategy_shards_is_fused_in_the_last_rewriting(write, capfd, machine: str) -> None:
    printed, programs = check(write, capfd, machine, """\
    options = tf.data.Options()
    options.experimental_optimization.filter_fusion = options.experimental_optimization.map_fusion = True
    strategy = tf.distribute.MirroredStrategy()
    rows = D.range(6).filter(lambda x: x > 0).filter(lambda x: x < 4).map(on_gpu).map(lambda x: x + 1).batch(4)
    for each in strategy.experimental_distribute_dataset(rows.with_options(options)):
        print(listed(strategy.experimental_local_results(each)))
    """)  # fmt: skip
    assert printed == ["[[[3, 5, 7]]]"]
    assert {"fused_predicate", "map_fusion_funcs/Dataset_map_on_gpu/Dataset_map_lambda"} <= programs.keys()


# Functions of which TensorFlow moves ops into branches; `run` lets datasets call each, also those of a tf.function.
BRANCHES = """\
    v = tf.Variable(3, dtype=tf.int64)
    @tf.function
    def helper(x, y):
        return x * y + 1
    def one_branch(x):
        with tf.device("/GPU:0"):
            twice = tf.cast(x, tf.float32) * 2.0
        return tf.cond(x > 1, lambda: twice + 1.0, lambda: 1.0)
    def both_branches(x):
        a, b = x * 2, x + 3
        return tf.cond(x > 1, lambda: b * 5, lambda: a - helper(x, b)) + a
    def stay(x):
        drawn, read = tf.random.uniform([], 0, 1, tf.int64), x + v
        with tf.control_dependencies([tf.debugging.assert_less(x, tf.constant(9, tf.int64))]):
            checked = x + 1
        return tf.cond(x > 1, lambda: x + drawn + read, lambda: checked)
    def other_order(x):
        a, b = x * 2, x + 3
        return tf.cond(a > b, lambda: a - b, lambda: b - a) + a * b
    def cases(x):
        a, parts = x * 2, tf.split(tf.stack([x, x + 1]), 2)
        return tf.switch_case(tf.cast(x % 3, tf.int32), [lambda: a + 1, lambda: x, lambda: parts[1][0]])
    def nested(x):
        a, b, c = x * 2, x + 3, x * 4
        def both():
            d = a * b
            return tf.cond(x > 2, lambda: tf.cond(x > 3, lambda: d + 1, lambda: b + c), lambda: c)
        return tf.cond(x > 1, both, lambda: x)
    def branch_in_a_loop(x):
        a = x * 2
        def body(i):
            t = i * 2
            return tf.cond(i > 3, lambda: t + a, lambda: i + 1)
        return tf.while_loop(lambda i: i < 5, body, [x])[0]
    def loop_in_a_branch(x):
        a = x * 2
        def walk():
            def body(i):
                t = i * 2
                return tf.cond(i > 3, lambda: t + a, lambda: i + 1)
            return tf.while_loop(lambda i: i < 5, body, [x])[0]
        return tf.cond(x > 1, walk, lambda: tf.while_loop(lambda i: i < a, lambda i: i + x + 1, [x])[0])
    def deep(x):
        a, b, c = x * 2, x + 3, x * 4
        def most():
            d = a * b
            def more():
                e = d + c
                return tf.cond(x > 3, lambda: tf.cond(x > 4, lambda: e * d, lambda: e + a), lambda: d - c)
            return tf.cond(x > 2, more, lambda: tf.switch_case(tf.cast(x % 2, tf.int32), [lambda: d + b, lambda: c]))
        return tf.cond(x > 1, most, lambda: tf.cond(a > 1, lambda: b * c, lambda: c - x))
    def deep_in_a_loop(x):
        a = x * 2
        def body(i, s):
            t = i * a
            return i + 1, tf.cond(s > 3, lambda: tf.cond(s > 9, lambda: deep(s % 7) + t, lambda: t), lambda: s + a)
        return tf.while_loop(lambda i, s: i < 3, body, [tf.constant(0, tf.int64), x])[1]
    def walk(x, add=lambda s: s + 2):
        return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, add(s)), [tf.constant(0), x])[1]
    def unused_loops(x):
        walk(x)
        walk(walk(x * 3))
        return walk(x)
    def unused_but_needed(x):
        drawn = walk(x, lambda s: s + tf.random.uniform([], 0, 1, tf.int64))
        with tf.control_dependencies([walk(x + 1)]):
            return tf.identity(x) + 1
    def unused_in_a_loop(x):
        return walk(x, lambda s: (walk(s), s + walk(x))[1])
    def unused_in_branches(x):
        a, b = x * 2, x + 3
        def first():
            walk(a)
            return walk(b) + 1
        tf.cond(x > 2, first, lambda: walk(x))
        return tf.cond(x > 1, first, lambda: (walk(b), helper(a, x))[1])
    def unused_without_its_identity(x):
        branch = tf.function(lambda x: x + 3).get_concrete_function(tf.TensorSpec([], tf.int64))
        other = tf.function(lambda x: x * 3).get_concrete_function(tf.TensorSpec([], tf.int64))
        for _ in range(2):
            chosen = tf.raw_ops.StatelessIf(
                cond=x > 1, input=[x * 5], Tout=[tf.int64], then_branch=branch, else_branch=other)
        listed = tf.raw_ops.StatelessCase(branch_index=1, input=[x * 7], Tout=[tf.int64], branches=[branch, other])
        tf.raw_ops.While(input=[x], cond=tf.function(lambda x: x < 3).get_concrete_function(x), body=branch)
        return chosen[0]
    def draw(s):
        return s + tf.random.uniform([], 0, 1, tf.int64)
    def repeated_control(x):
        return walk(walk(x, draw), draw)  # the second loop runs after the first, whose result it takes
    def run(*functions):
        for f in functions:
            print(*(x.numpy().tolist() for x in D.range(5).map(f)))
            print(*(x.numpy().tolist() for x in D.range(3).flat_map(lambda i: D.range(i + 1).map(f))))
            @tf.function
            def count():
                found = 0
                for _ in D.range(3).map(f):
                    found += 1
                return found
            print(int(count()))
"""


def check_branches(write, capfd, machine: str, *names: str) -> list[str]:
    return check(write, capfd, machine, f"{BRANCHES}    run({', '.join(names)})\n")[0]


@MACHINES
def test_ops_are_moved_into_the_one_branch_that_takes_them(write, capfd, machine: str) -> None:
    printed = check_branches(write, capfd, machine, "one_branch", "both_branches", "other_order", "cases")
    assert printed == [
        "1.0 1.0 5.0 7.0 9.0", "1.0 1.0 1.0 1.0 1.0 5.0", "3",
        "-1 -1 29 36 43", "-1 -1 -1 -1 -1 29", "3",
        "3 10 21 36 57", "3 3 10 3 10 21", "3",
        "1 1 3 7 4", "1 1 1 1 1 3", "3",
    ]  # fmt: skip


@MACHINES
def test_ops_that_are_stateful_are_not_moved_into_a_branch(write, capfd, machine: str) -> None:
    assert check_branches(write, capfd, machine, "both_branches", "stay")[3:] == ["1 2 7 9 11", "1 1 2 1 2 7", "3"]


@MACHINES
def test_ops_are_moved_into_branches_of_branches_and_of_loops(write, capfd, machine: str) -> None:
    printed = check_branches(write, capfd, machine, "nested", "branch_in_a_loop", "loop_in_a_branch", "both_branches")
    assert printed[:3] == ["0 1 8 18 57", "0 0 1 0 1 8", "3"]
    assert len(printed) == 12


@MACHINES
def test_many_nested_functions_are_opened_in_the_order_of_their_names(write, capfd, machine: str) -> None:
    printed = check_branches(write, capfd, machine, "deep", "deep_in_a_loop", "both_branches")
    assert printed[:6] == ["0 16 25 24 80", "0 0 16 0 16 25", "3", "0 4 8 12 16", "0 0 4 0 4 8", "3"]


@MACHINES
def test_the_functions_of_a_whole_pipeline_are_opened_together(write, capfd, machine: str) -> None:
    printed, _ = check(write, capfd, machine, BRANCHES + """\
    print(*map(int, D.range(6).map(deep).filter(lambda x: deep_in_a_loop(x) > 3).map(deep_in_a_loop)))
    print(int(D.range(4).map(deep_in_a_loop).map(both_branches).reduce(v, lambda s, x: s + deep(x % 5))))
    """)  # fmt: skip
    assert printed == ["64 180 121 345 32016", "203"]


@MACHINES
def test_branches_and_loops_that_nothing_takes_are_left_out(write, capfd, machine: str) -> None:
    printed = check_branches(
        write, capfd, machine, "unused_loops", "unused_but_needed", "unused_in_a_loop", "unused_in_branches",
        "unused_without_its_identity",
    )  # fmt: skip
    assert printed == [
        "4 5 6 7 8", "4 4 5 4 5 6", "3",
        "1 2 3 4 5", "1 1 2 1 2 3", "3",
        "8 11 14 17 20", "8 8 11 8 11 14", "3",
        "1 3 10 11 12", "1 1 3 1 3 10", "3",
        "0 15 13 18 23", "0 0 15 0 15 13", "3",
    ]  # fmt: skip


@MACHINES
def test_a_control_input_that_says_what_a_data_input_does_is_left_out(write, capfd, machine: str) -> None:
    printed = check_branches(write, capfd, machine, "repeated_control", "both_branches")
    assert printed[:3] == ["0 1 2 3 4", "0 0 1 0 1 2", "3"]


@MACHINES
@pytest.mark.parametrize("name", ["map_fusion", "filter_fusion", "map_and_filter_fusion"])
def test_an_optimizer_that_sorts_the_nodes_of_functions(write, capfd, machine: str, name: str) -> None:
    printed, _ = check(write, capfd, machine, BRANCHES + f"""\
    options = tf.data.Options()
    options.experimental_optimization.{name} = True
    def late_constants(x):
        a, b = x * 2, x + 3
        def body(i, s):
            def some():
                c = s * 7
                return tf.cond(s > 9, lambda: c - b * 2, lambda: helper(a, c) + 11)
            return i + 1, tf.cond(s > 3, some, lambda: s + a + 5) + tf.cond(s > a, lambda: b - 4, lambda: a * s)
        return tf.while_loop(lambda i, s: i < 3, body, [tf.constant(0), x])[1]
    @tf.function
    def total():
        rows = D.range(4).take_while(lambda x: late_constants(x) < 99999).scan(v, lambda s, x: (s + 1, deep(x) + s))
        return rows.with_options(options).reduce(v, lambda s, x: s + x)
    print(int(total()))
    print(*map(int, D.range(3).map(late_constants)))
    """)  # fmt: skip
    assert printed == ["86", "70 426 859"]


def test_a_call_that_is_never_made_is_not_the_one_that_another_dataset_makes(write, capfd) -> None:
    write(
        HEAD
        + BRANCHES
        + """\
    print(*map(int, D.range(3).map(lambda x: helper(x, x))))
    @tf.function
    def total():
        return D.range(3).reduce(v, lambda s, x: s + walk(x, lambda s: (helper(s, x), s + 2)[1]))
    print(int(total()))
    """
    )
    result = simplace.check("model.py", "cpu:1")
    assert capfd.readouterr().out == "1 2 5\n18\n"
    assert result.agrees, agreement_line(result)
    assert agreement_line(result).endswith("; 1 function not compared, as this run did not instantiate it")


@MACHINES
def test_ops_are_moved_where_a_dataset_is_walked_through_by_a_reduction(write, capfd, machine: str) -> None:
    printed, _ = check(write, capfd, machine, BRANCHES + """\
    @tf.function
    def total():
        return D.range(4).map(both_branches).reduce(tf.constant(0, tf.int64), lambda s, x: s + other_order(x))
    print(int(total()))
    print(int(D.range(4).filter(lambda x: both_branches(x) > 0).reduce(v, lambda s, x: s + nested(x))))
    """)  # fmt: skip
    assert len(printed) == 2
