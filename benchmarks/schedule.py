"""Time the schedule simulation: events a second, and against grappler's MeasureCosts on the same graphs.

Run: python benchmarks/schedule.py [--no-tensorflow]. Graphs are layers of random products on a CPU and two GPUs.
What each models: grappler serves each device like one serial server, takes the time of a transfer for 1 ns, knows no
threads, no launch queue and no memory over time; simplace replays threads, streams and copies. Costs differ as well,
so only the time to simulate is compared here.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from statistics import median

from simplace.costs.estimate import estimate_costs
from simplace.costs.roofline import make_roofline
from simplace.devices.device_set import DeviceSet, local_devices
from simplace.executor.control_flow import control_flow
from simplace.executor.execution import EXECUTORS
from simplace.executor.step_options import Threads
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import GraphDef, NodeDef, ShapeAttr
from simplace.kernels.registry import KernelTable
from simplace.partition.graph_partition import partition_graph
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import Program

WIDTH, SIDE, ROUNDS = 20, 256, 3
DEVICES: DeviceSet = local_devices([("CPU", 1), ("GPU", 2)])


def edges(layers: int) -> list[tuple[str, list[str], str]]:
    """Draw the graph: (name, inputs, device) of each product, layer by layer."""
    chance = random.Random(0)
    names = [d.name for d in DEVICES]
    before = [f"x{i}" for i in range(WIDTH)]
    found = []
    for layer in range(layers):
        now = [f"m{layer}_{i}" for i in range(WIDTH)]
        found += [(name, [chance.choice(before), chance.choice(before)], chance.choice(names)) for name in now]
        before = now
    return found


def placed(layers: int) -> Placement:
    """Place the graph with simplace."""
    attrs = {"T": DataType.DT_FLOAT, "_output_shapes": (ShapeAttr((SIDE, SIDE)),)}
    host = DEVICES.host.name
    inputs = {"dtype": DataType.DT_FLOAT, "shape": ShapeAttr((SIDE, SIDE))}
    nodes = [NodeDef(f"x{i}", "Placeholder", host, (), inputs) for i in range(WIDTH)]
    nodes += [NodeDef(name, "MatMul", device, tuple(ins), attrs) for name, ins, device in edges(layers)]
    return place_program(Program("layers", "session", GraphDef(tuple(nodes), {})), DEVICES, KernelTable.shipped())


def seconds(work: Callable[[], object]) -> float:
    """Return the median time of some rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def grappler(layers: int) -> tuple[float, float]:
    """Return (seconds to simulate, the makespan it finds) of MeasureCosts on a virtual cluster of the same devices."""
    import tensorflow as tf
    from tensorflow.core.protobuf import device_properties_pb2 as properties
    from tensorflow.python.grappler import cluster, item

    with tf.Graph().as_default() as graph:
        made = {f"x{i}": tf.zeros([SIDE, SIDE], name=f"x{i}") for i in range(WIDTH)}
        for name, ins, device in edges(layers):
            with tf.device(device):
                made[name] = tf.matmul(made[ins[0]], made[ins[1]], name=name)
        last = tf.add_n([tensor for name, tensor in made.items() if not tensor.consumers()])
        graph.add_to_collection(tf.compat.v1.GraphKeys.TRAIN_OP, last.op)
        meta = tf.compat.v1.train.export_meta_graph(graph=graph)
    named = [
        properties.NamedDevice(
            name=device.name,
            properties=properties.DeviceProperties(
                type=device.type, frequency=1410, num_cores=108 if device.type == "GPU" else 2,
                environment={"architecture": "8"}, bandwidth=1555 * 10**6,
            ),
        )
        for device in DEVICES
    ]  # fmt: skip
    virtual = cluster.Cluster(devices=named)
    one = item.Item(meta)
    found = [0.0]

    def run() -> None:
        found[0] = virtual.MeasureCosts(one)[1]

    return seconds(run), found[0]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-tensorflow", action="store_true", help="leave grappler out")
    options = parser.parse_args()
    print(f"{'nodes':>7} {'partition':>10} {'estimate':>8} {'executor':>11} {'simulate':>9} {'events':>8} "
          f"{'events/s':>9} {'makespan':>9}")  # fmt: skip
    for layers in (5, 50, 500):
        placement = placed(layers)
        graph = partition_graph(placement.placed)
        estimated = estimate_costs(graph, make_roofline())
        flow = control_flow(graph)
        partitioning = seconds(lambda placement=placement: partition_graph(placement.placed))  # type: ignore[misc]
        costs = seconds(lambda graph=graph: estimate_costs(graph, make_roofline()))  # type: ignore[misc]
        for name, run in EXECUTORS.items():
            threads = Threads(inter_op=4, cores=4)
            trace, events = run(estimated, flow, threads)
            took = seconds(
                lambda run=run, estimated=estimated, flow=flow, threads=threads: run(estimated, flow, threads)
            )  # type: ignore[misc]
            print(f"{len(graph):>7} {partitioning:>9.3f}s {costs:>7.3f}s {name:>11} {took:>8.3f}s {events:>8} "
                  f"{events / took:>9.0f} {trace.makespan / 1e6:>7.2f}ms")  # fmt: skip
        if not options.no_tensorflow:
            took, makespan = grappler(layers)
            print(f"{'':>7} {'':>10} {'':>8} {'grappler':>11} {took:>8.3f}s {'':>8} {'':>9} {makespan * 1e3:>7.2f}ms")


if __name__ == "__main__":
    main()
