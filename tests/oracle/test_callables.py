"""Callables and partial runs of sessions: placed as a run of the same, and computed beside where a GPU is emulated."""

from __future__ import annotations

from textwrap import dedent

import pytest

from simplace.api import Settings, check
from simplace.machine.machine import Machine
from simplace.oracle.launch import Forks, starting_by
from simplace.result import Result

pytestmark = pytest.mark.tf

SCRIPT = """\
    import numpy as np
    import tensorflow as tf
    from tensorflow.core.protobuf import config_pb2

    v1 = tf.compat.v1
    one = np.ones(2, np.float32)
    with tf.Graph().as_default():
        with v1.device("/gpu:0"):
            x = v1.placeholder(tf.float32, [2], name="x")
            a = tf.add(x, x, name="a")
        b = tf.strings.as_string(a, name="b")
        noise = tf.random.uniform([2], name="noise")
        with v1.device("/cpu:0"):
            c = tf.add(a, noise, name="c")
        refused = v1.placeholder(tf.float32, name="refused")
        config = v1.ConfigProto(graph_options=v1.GraphOptions(place_pruned_graph=True))
        with v1.Session(config=config) as session:
            print(session.make_callable(b, feed_list=[x])(one))
            options = config_pb2.CallableOptions(feed=["x"], fetch=["c:0", "b"])
            print(session._make_callable_from_options(options)(one))
            handle = session.partial_run_setup([a, c], [x])
            try:
                session.partial_run(handle, [a], {x: one})
            except tf.errors.NotFoundError:
                pass  # what is fed is not found again where the graph was pruned first
            gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
            options = config_pb2.CallableOptions(fetch=["c:0"], fetch_skip_sync=True, fetch_devices={"c:0": gpu})
            options.tensor_connection.add(from_tensor=noise.name, to_tensor="x:0")
            session._make_callable_from_options(options)
            with v1.device("/gpu:0"):
                bad = tf.strings.upper(b, name="bad")
            options = config_pb2.CallableOptions(feed=["b:0"], target=["bad"])
            session._make_callable_from_options(options)
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Result:
    path = tmp_path_factory.mktemp("callables") / "model.py"
    path.write_text(dedent(SCRIPT))
    with starting_by(forks):
        return check(str(path), Settings(Machine(gpus=1)))


def test_each_is_placed_as_tensorflow_does(checked: Result) -> None:
    assert checked.agrees
    assert [len(placed.placement.nodes) for placed in checked] == [4, 8, 7, 6, 0]


def test_arguments_are_numbered_in_the_order_of_the_options(checked: Result) -> None:
    names = set(list(checked)[1].placement.graph.names)
    assert {"_arg_x_0_0", "_retval_c_0_0", "_retval_b_0_1"} <= names


def test_a_partial_run_receives_and_sends(checked: Result) -> None:
    ends = {node.name: node.op for node in list(checked)[2].placement.nodes if node.name.startswith("_")}
    assert ends == {"_recv_x_0": "_Recv", "_send_a_0": "_Send", "_send_c_0": "_Send"}


def test_what_a_callable_fetches_stays_where_it_was_fetched_before(checked: Result) -> None:
    """An argument or result is stateful: a device that the options name loses to that of an earlier one so called."""
    (result,) = [node for node in list(checked)[3].placement.nodes if node.name.startswith("_retval")]
    assert result.device.endswith("CPU:0")


def test_the_refusal_comes_when_the_callable_is_made(checked: Result) -> None:
    refusal = list(checked)[-1].placement.refusal
    assert refusal is not None
    assert "bad" in refusal.message
