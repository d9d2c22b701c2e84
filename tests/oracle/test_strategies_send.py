"""What tf.distribute sends between replicas is told as collectives, whichever way it reduces."""

from __future__ import annotations

import pytest

import simplace
from simplace.analysis.schedule import schedule_placement
from simplace.views.text.traffic_phrases import list_traffic

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

SCRIPT = """
import tensorflow as tf

def make(name, cross_device_ops):
    strategy = tf.distribute.MirroredStrategy(cross_device_ops=cross_device_ops)
    with strategy.scope():
        table = tf.Variable(tf.zeros([100, 8]))
        kernel = tf.Variable(tf.zeros([8, 16]))
        bias = tf.Variable(tf.zeros([16]))
        optimizer = tf.keras.optimizers.SGD(0.1)
        optimizer.build([table, kernel, bias])

    def replica(ids):
        variables = [table, kernel, bias]
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids) @ kernel + bias)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def step(ids):
        strategy.run(replica, (ids,))

    step.__name__ = name
    tf.function(step)(tf.zeros([4], tf.int32))

make("nccl", None)
make("nccl_of_graphs", tf.distribute.NcclAllReduce())
make("hierarchical", tf.distribute.HierarchicalCopyAllReduce())
make("to_one", tf.distribute.ReductionToOneDevice())
"""

# The dense gradients are 8 x 16 and 16 floats, packed into one tensor but for ReductionToOneDevice; the slices of the
# embedding are 4 x 8 floats and 4 indices. CollectiveGather has each of its two branches twice, and asks for shapes.
COLLECTIVES = {
    "nccl": ["all-reduce ×1, 576 B per GPU", "all-gather ×5, ≥ 148 B per GPU"],
    "nccl_of_graphs": ["all-reduce ×1, 576 B per GPU", "all-gather ×2, 144 B per GPU (by 12 of the copies)"],
    "hierarchical": ["all-reduce ×1, 576 B per GPU (by 6 of the copies)",
                     "all-gather ×2, 144 B per GPU (by 12 of the copies)"],
    "to_one": ["all-gather ×2, 144 B per GPU (by 12 of the copies)",
               "all-reduce ×2, 576 B per GPU (by 12 of the copies)"],
}  # fmt: skip


def test_each_way_to_reduce_is_told_as_collectives_of_the_same_bytes(tmp_path):
    script = tmp_path / "replicas.py"
    script.write_text(SCRIPT, encoding="utf-8")
    found = {placed.name: placed for placed in simplace.place(str(script), "cpu:1,gpu:4")}
    told = {
        name: [part for part in list_traffic(found[name].traffic) if part.startswith("all-")] for name in COLLECTIVES
    }
    assert told == COLLECTIVES
    for name in COLLECTIVES:
        schedule = schedule_placement(found[name].placement)
        assert schedule.estimated.graph.traffic == found[name].traffic
        spans = [span for span in schedule.trace.spans if span.kind == "collective"]
        assert len({span.start for span in spans}) * 4 == len(spans), "each holds up all four GPUs at once"
        assert bool(spans) == name.startswith("nccl")
