"""Build the graph of a program, and run the passes that TensorFlow runs over it before it is placed."""

from __future__ import annotations

from simplace.devices.device_set import DeviceSet
from simplace.errors import TargetError
from simplace.graph.builder import GraphBuilder
from simplace.graph.graph import Graph, freeze_graph
from simplace.lowering.accumulate_n_optimizer import remove_accumulate_n
from simplace.lowering.function_body import instantiate_function
from simplace.lowering.graph_constructor import construct_graph
from simplace.lowering.isolate_placer_inspection_required_ops_pass import isolate_calls
from simplace.lowering.lower_functional_ops import lower_functional_ops
from simplace.lowering.op_signatures import Signatures
from simplace.lowering.parallel_concat_optimizer import remove_parallel_concat
from simplace.lowering.pin_args_and_rets import pin_all_results, pin_arguments, pin_results, refuse_unseen
from simplace.lowering.pins import pin_nodes
from simplace.lowering.subgraph import rewrite_for_execution
from simplace.program.program import Program


def lower_program(program: Program, signatures: Signatures, devices: DeviceSet, target: str | None) -> Graph:
    """Return the graph that the placer sees, of a program that a pass may change."""
    if program.function is None:
        graph = _session_graph(program, signatures, devices)
        pin_nodes(graph.op_nodes(), program.pins, devices)
    else:
        graph = _function_graph(program, program.function, signatures, devices, target)
    remove_accumulate_n(graph)
    lower_functional_ops(
        graph, signatures, inline_calls=program.inlines_calls, single_threaded=program.is_single_threaded
    )
    remove_parallel_concat(graph)
    isolate_calls(graph, signatures)
    pin_nodes(graph.op_nodes(), program.pins, devices)
    return freeze_graph(graph)


def _session_graph(program: Program, signatures: Signatures, devices: DeviceSet) -> GraphBuilder:
    graph = construct_graph(program.graph.nodes, signatures)
    if program.pruned_to is not None:
        rewrite_for_execution(graph, program.pruned_to, devices.devices[0].name)  # the first device is the client's
    if program.kept_devices:
        for node in graph.op_nodes():
            if node.name in program.kept_devices and signatures.is_stateful(node.op):
                node.assigned = program.kept_devices[node.name]
    return graph


def _function_graph(
    program: Program, name: str, signatures: Signatures, devices: DeviceSet, target: str | None
) -> GraphBuilder:
    function = program.graph.library.get(name)
    if function is None:
        raise TargetError(f"the library of {program.name!r} has no function {name!r}")
    body = instantiate_function(function, {}, signatures)
    refuse_unseen(program.arg_devices, devices)
    pin_arguments(body, program.arg_devices)
    pin_nodes(body.graph.op_nodes(), program.pins, devices)
    if program.caller is not None:
        pin_all_results(body, program.scope, with_resources=program.kind == "dataset")
        return body.graph
    fallback = devices.find(target) if target and program.soft_placement else None
    pin_results(body, devices, fallback, signatures)
    return body.graph
