"""Inline function calls and lower If, Case and While until none is left that TensorFlow would touch.

Mirrors tensorflow/core/common_runtime/lower_functional_ops.cc.
"""

from __future__ import annotations

from simplace.errors import TargetError
from simplace.graph.builder import GraphBuilder, Node
from simplace.graph.node_def import FunctionDef
from simplace.graph.op_kinds import (
    CASES,
    IFS,
    MUST_COMPILE,
    SYMBOLIC_GRADIENT,
    WHILES,
    is_arg,
    is_partitioned_call,
    is_retval,
)
from simplace.lowering.explosion import refuse_explosion
from simplace.lowering.function_body import Body, instantiate_function, is_template
from simplace.lowering.inline_function_utils import LOWER_AS_MULTI_DEVICE, inline_function_body, may_inline
from simplace.lowering.lower_if_op import lower_case, lower_if
from simplace.lowering.lower_while_op import lower_while
from simplace.lowering.op_signatures import Signatures

LOWER_USING_SWITCH_MERGE = "_lower_using_switch_merge"
_LOWERINGS = {
    **dict.fromkeys(IFS, lower_if), **dict.fromkeys(CASES, lower_case), **dict.fromkeys(WHILES, lower_while),
}  # fmt: skip


def lower_functional_ops(
    graph: GraphBuilder, signatures: Signatures, *, inline_calls: bool, single_threaded: bool = False
) -> None:
    """Walk the nodes by id, those added meanwhile included, and replace calls and functional control flow.

    Without `inline_calls`, as in a session, only the calls that lowering makes itself are inlined. An executor that is
    `single_threaded` knows no Switch and no Merge: for it control flow stays functional. A graph without arguments and
    results keeps its replaced nodes fetchable. Raises `TargetError` for a function that inlines itself,
    through whatever calls, where TensorFlow would never end, and for calls of calls without number.
    """
    refuse_explosion(graph.op_nodes(), signatures, inline_calls=inline_calls)
    fetchable = not any(is_arg(node.op) or is_retval(node.op) for node in graph.op_nodes())
    bodies = _Bodies(signatures)
    lowerings = {} if single_threaded else _LOWERINGS
    # The functions that a node came out of, innermost last, for the nodes that may be replaced in their turn.
    inside: dict[int, tuple[str, ...]] = {}
    for node in graph.op_nodes():
        if _is_for_xla(node):
            continue
        chain = inside.pop(node.id, ())
        if signatures.is_call(node.op):
            if inline_calls or node.attrs.get(LOWER_AS_MULTI_DEVICE) is True:
                chain, new = _inline_call(graph, node, bodies, chain, fetchable)
                inside.update((n.id, chain) for n in new if signatures.is_call(n.op) or n.op in lowerings)
        elif node.op in lowerings and node.attrs.get(LOWER_USING_SWITCH_MERGE) is True:
            calls = _LOWERINGS[node.op](graph, node, signatures, fetchable=fetchable)
            inside.update((call.id, chain) for call in calls)


class _Bodies:
    """Build each function's body once, unless the attributes of the call may change it."""

    def __init__(self, signatures: Signatures) -> None:
        self.signatures = signatures
        self._built: dict[str, Body] = {}
        self._are_templates: dict[str, bool] = {}

    def of(self, function: FunctionDef, call: Node) -> Body:
        built = self._built.get(function.name)
        if built is not None:
            return built
        body = instantiate_function(function, call.attrs, self.signatures)
        if not self._is_template(function):
            self._built[function.name] = body
        return body

    def _is_template(self, function: FunctionDef) -> bool:
        known = self._are_templates.get(function.name)
        if known is None:
            known = self._are_templates[function.name] = is_template(function)
        return known


def _inline_call(
    graph: GraphBuilder, call: Node, bodies: _Bodies, chain: tuple[str, ...], fetchable: bool
) -> tuple[tuple[str, ...], list[Node]]:
    function = _find_callee(call, bodies.signatures)
    if function is None:
        return chain, []
    if function.name in chain:
        path = " calls ".join(repr(name) for name in (*chain[chain.index(function.name) :], function.name))
        raise TargetError(
            f"infinite recursion while inlining functions: {path} (at node {call.name!r}); "
            "mark one of the functions with the attribute _noinline"
        )
    body = bodies.of(function, call)
    if not may_inline(call, body, function.attrs):
        return chain, []
    return (*chain, function.name), inline_function_body(graph, call, body, fetchable=fetchable)


def _find_callee(call: Node, signatures: Signatures) -> FunctionDef | None:
    if is_partitioned_call(call.op):
        return signatures.function(call.attrs.get("f"), call.name)
    return None if call.op == SYMBOLIC_GRADIENT else signatures.library[call.op]


def _is_for_xla(node: Node) -> bool:
    attrs = node.attrs
    return bool(attrs.get("_tpu_replicate") or attrs.get("_xla_compile_id")) or attrs.get(MUST_COMPILE) is True
