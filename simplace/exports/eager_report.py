"""Write the eager ops of a result as JSON-ready data: a program of kind "eager" in schema simplace/placement/1."""

from __future__ import annotations

from typing import Any

from simplace.explain.eager import RULES, tell_choice
from simplace.graph import dtypes
from simplace.placement.eager.eager_placement import EagerCopies, PlacedEager, PlacedOp
from simplace.program.program import EAGER_OPS
from simplace.program.status import Refusal


def eager_report(eager: PlacedEager, agreement: dict[str, Any] | None) -> dict[str, Any]:
    """Return all that ran outside of functions; a node is an op with its count."""
    return {
        "name": EAGER_OPS,
        "label": EAGER_OPS,
        "kind": "eager",
        "nodes": [_node(each, eager) for each in eager.ops],
        "copies": [_copy(each, copy) for each in eager.ops for copy in each.copies],
        "agreement": agreement,
    }


def _node(each: PlacedOp, eager: PlacedEager) -> dict[str, Any]:
    op, placement = each.op, each.placement
    rule = RULES[placement.choice.rule] if placement.choice is not None else "refused"
    return {
        "name": each.name,
        "op": op.op,
        "times": each.times,
        "requested": op.scope,
        "soft_placement": op.soft_placement,
        "device": placement.device,
        "reason": {"rule": rule, "text": str(tell_choice(each, eager))},
        "source": op.at,
        "inputs": [
            {"dtype": dtypes.format_dtype(given.dtype), "device": given.device, "made_by": _makers(each, eager, i)}
            for i, given in enumerate(op.inputs)
        ],
        "error": None if placement.refusal is None else _error(placement.refusal),
    }


def _makers(each: PlacedOp, eager: PlacedEager, number: int) -> list[dict[str, Any]]:
    return [{"name": eager.ops[one.maker].name, "times": one.times} for one in each.made_by if one.input == number]


def _copy(each: PlacedOp, copy: EagerCopies) -> dict[str, Any]:
    return {
        "op": each.name,
        "input": copy.input,
        "from": copy.source,
        "to": copy.target,
        "dtype": dtypes.format_dtype(each.op.inputs[copy.input].dtype),
        "tensors": copy.tensors,
        "bytes": copy.bytes,
    }


def _error(refusal: Refusal) -> dict[str, Any]:
    return {"code": refusal.code, "message": refusal.message}
