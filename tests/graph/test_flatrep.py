"""The order of functions in a library, compared with that of a graph in which TensorFlow has put them."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from simplace.graph.flatrep import order_functions, walk_map

# Read lists of names; print the names of the functions of a graph to which they were added, in TensorFlow's order.
CHILD = """
import json, sys
import tensorflow as tf
def walk(names):
    with tf.Graph().as_default() as graph:
        for name in names:
            library = tf.compat.v1.GraphDef()
            library.library.function.add().signature.name = name
            tf.graph_util.import_graph_def(library, name="")
        return [each.signature.name for each in graph.as_graph_def().library.function]
print(json.dumps([walk(names) for names in json.load(sys.stdin)]))
"""


def make_names(count: int) -> list[str]:
    draw = random.Random(count)
    return [
        f"__inference_{'x' * draw.randrange(9)}_{draw.randrange(10 ** draw.randint(1, 8))}_{i}" for i in range(count)
    ]


@pytest.mark.tf
def test_a_library_is_walked_through_as_its_hash_map_has_it() -> None:
    lists = [make_names(count) for count in (0, 1, 5, 6, 7, 12, 13, 25, 26, 60, 300)]
    ran = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(lists), capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == [walk_map(names) for names in lists]


def test_names_that_come_twice_are_there_once() -> None:
    names = make_names(20)
    assert walk_map([*names, *names]) == walk_map(names)


def test_the_names_decide_whatever_their_order() -> None:
    names = make_names(20)
    assert order_functions(names) == order_functions(reversed(names)) != sorted(names)
    assert sorted(order_functions(names)) == sorted(names)
