"""Write a result as JSON-ready data, schema simplace/placement/1."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from simplace.compare.compare_placements import Agreement
from simplace.compare.compare_transfers import CopyAgreement, Transfer
from simplace.compare.coverage import Coverage
from simplace.explain import reasons as why
from simplace.explain.conflict import Conflict, find_conflict
from simplace.explain.finding import Finding
from simplace.explain.placement_findings import find_in_placement, rank_findings
from simplace.explain.sentences import Words, state_conflict, state_reason
from simplace.exports.communication_report import report_collective, report_traffic
from simplace.exports.eager_report import eager_report
from simplace.exports.failure_report import report_failures
from simplace.exports.finding_report import report_findings
from simplace.graph.constant_numbers import Numbers
from simplace.partition.run_copies import RunCopies
from simplace.partition.transfers import Copy
from simplace.placement.colocation_graph import ColocationEdge, Notice
from simplace.placement.eager.eager_placement import PlacedEager
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import Cluster
from simplace.program.program import Caller, Program
from simplace.program.status import Refusal
from simplace.result import Placed, Result

SCHEMA = "simplace/placement/1"

# Fields of reasons with node ids; JSON has their names.
_NODE_FIELDS = frozenset(
    {"node", "producer", "source", "leader", "input", "consumers", "kernels_missing_at", "first", "second", "other"}
)


def report_result(result: Result, simulated: Sequence[Finding] = ()) -> dict[str, Any]:
    """Return the whole result as dictionaries, lists, strings and numbers; `simulated` are findings about steps."""
    return {
        "schema": SCHEMA,
        "target": result.target,
        "tensorflow": result.tensorflow,
        "kernels": result.kernels,
        "devices": [device.name for device in result.devices],
        "programs": [
            *(_report_program(placed, simulated, result.used_devices) for placed in result.programs),
            *([] if result.eager is None else [_eager(result.eager, result)]),
        ],
        "failures": report_failures(result),
        "remarks": list(result.remarks),
        "ending": result.ending or None,
        "unreached": [{"name": each.name, "source": each.source, "why": each.why} for each in result.unreached],
        "coverage": None if result.coverage is None else _coverage(result.coverage),
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {
        "accounted": coverage.accounted,
        "total": coverage.total,
        "eager": coverage.eager,
        "missing": list(coverage.missing),
    }


def _eager(eager: PlacedEager, result: Result) -> dict[str, Any]:
    agreement = None if result.eager_agreement is None else _report_agreement(result.eager_agreement)
    return eager_report(eager, agreement)


def _report_values(program: Program) -> dict[str, Numbers]:
    """Return the integers that arguments of the first call were, by name."""
    function = program.graph.library.get(program.function or "")
    return {} if function is None else {function.inputs[i].name: value for i, value in program.given_values.items()}


def _report_program(placed: Placed, simulated: Sequence[Finding], busy: Collection[str]) -> dict[str, Any]:
    placement = placed.placement
    program = placement.program
    found = find_in_placement(placement, placed.communication, busy)
    of_step = [finding for finding in simulated if finding.program == program.title]
    return {
        "name": program.name,
        "label": program.title,
        "kind": program.kind,
        "function": program.function,
        "arg_devices": list(program.arg_devices),
        "given_shapes": {name: None if shape is None else list(shape) for name, shape in program.given_shapes},
        "given_values": _report_values(program),
        "caller": None if program.caller is None else _caller(program.caller),
        "call_device": placement.default.name if placement.default else None,
        "soft_placement": placement.soft_placement,
        "nodes": [_report_node(placement, i) for i in placement.graph.op_ids if i in placement.decisions],
        "clusters": [_cluster(placement, cluster) for cluster in placed.clusters],
        "copies": [copy_report(placement, copy) for copy in placed.copies],
        "collectives": [report_collective(placement, one) for one in placed.collectives],
        "communication": report_traffic(placed.traffic),
        "findings": report_findings(rank_findings([*found, *of_step])),
        "runs": [_report_run(placement, run, run is placed.run) for run in placed.runs],
        "agreement": None if placed.agreement is None else _report_agreement(placed.agreement),
        "copy_agreement": None if placed.copy_agreement is None else _copy_agreement(placed.copy_agreement),
        "error": None if placement.refusal is None else _report_error(placement, placement.refusal),
    }


def _report_node(placement: Placement, i: int) -> dict[str, Any]:
    node = placement.node(i)
    return {
        "name": node.name,
        "op": node.op,
        "requested": node.requested,
        "device": node.device,
        "reason": reason_report(placement, i),
        "source": node.source,
    }


def _caller(caller: Caller) -> dict[str, Any]:
    """Return who calls a function out of a kernel; program and node are null for an op that ran eagerly."""
    return {
        "program": caller.program or None,
        "node": caller.node or None,
        "op": caller.op,
        "role": caller.role,
        "called": caller.called or None,
        "source": caller.at,
    }


def _cluster(placement: Placement, cluster: Cluster) -> dict[str, Any]:
    """Return what XLA compiles of one call."""
    words, names = Words(placement), placement.graph.names
    reasons = ((op, why.make_compiled_reason(cluster, op)) for op in cluster.ops)
    return {
        "call": names[cluster.node],
        "function": cluster.function,
        "device": cluster.device,
        "ops": [
            {
                "name": op.name,
                "op": op.op,
                "source": op.at,
                "supported": op.is_supported,
                "reason": {
                    "rule": reason.rule,
                    "call": names[reason.node],
                    "others": reason.others,
                    "text": str(words.compiled(reason)),
                },
            }
            for op, reason in reasons
        ],
    }


def reason_report(placement: Placement, i: int) -> dict[str, Any]:
    """Return the reason for a placed node's device: its rule, what it is made of, and the same as a sentence."""
    reason = why.find_reason(placement, i)
    names = [field.name for field in fields(reason) if field.name not in ("node", "device")]
    found = {name: _report_value(placement, name, getattr(reason, name)) for name in names}
    return {"rule": reason.rule, **found, "text": str(state_reason(placement, reason))}


def _report_value(placement: Placement, name: str, value: Any) -> Any:
    if isinstance(value, tuple):
        return [_report_value(placement, name, item) for item in value]
    if isinstance(value, ColocationEdge | Notice):
        return {f.name: _report_value(placement, f.name, getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if name in _NODE_FIELDS and isinstance(value, int):
        return placement.graph.names[value] if value >= 0 else None
    assert not is_dataclass(value), f"reasons hold no {type(value).__name__} in {name}"
    return value


def _report_run(placement: Placement, run: RunCopies, is_step: bool) -> dict[str, Any]:
    """Return a run of a session with the copies that it makes, of what it feeds and fetches, too."""
    asked = run.run.run
    return {
        "source": run.run.at,
        "feeds": list(asked.feeds),
        "fetches": list(asked.fetches),
        "targets": list(asked.targets),
        "is_step": is_step,
        "copies": [copy_report(placement, copy) for copy in run.copies],
    }


def copy_report(placement: Placement, copy: Copy) -> dict[str, Any]:
    """Return one copy."""
    return {
        "tensor": copy.tensor,
        "from": copy.source,
        "to": copy.target,
        "from_memory": copy.source_memory,
        "to_memory": copy.target_memory,
        "dtype": copy.dtype,
        "shape": None if copy.shape is None else list(copy.shape),
        "bytes": copy.size,
        "consumers": [placement.graph.names[i] for i in copy.consumers],
    }


def _report_agreement(agreement: Agreement) -> dict[str, Any]:
    return {
        "same": agreement.same,
        "total": agreement.total,
        "differences": [
            {"node": d.node, "op": d.op, "simplace": d.ours, "tensorflow": d.theirs} for d in agreement.differences
        ],
        "refused": {"simplace": agreement.refusals[0] or None, "tensorflow": agreement.refusals[1] or None},
    }


def _copy_agreement(agreement: CopyAgreement) -> dict[str, Any]:
    return {
        "same": agreement.same,
        "total": agreement.total,
        "differences": [
            {
                "tensor": found.transfer.tensor,
                "from": found.transfer.source,
                "to": found.transfer.target,
                "simplace": _report_transfer(found.ours),
                "tensorflow": _report_transfer(found.theirs),
            }
            for found in agreement.differences
        ],
    }


def _report_transfer(transfer: Transfer | None) -> dict[str, Any] | None:
    if transfer is None:
        return None
    return {
        "send": transfer.sent_by,
        "receive": transfer.received_by,
        "dtype": transfer.dtype,
        "consumers": list(transfer.consumers),
        "after": list(transfer.after),
    }


def _report_error(placement: Placement, refusal: Refusal) -> dict[str, Any]:
    names = placement.graph.names
    return {
        "code": refusal.code,
        "message": refusal.message,
        "node": names[refusal.node] if refusal.node >= 0 else None,
        "conflict": _report_conflict(placement, find_conflict(placement)),
    }


def _report_conflict(placement: Placement, found: Conflict | None) -> dict[str, Any] | None:
    if found is None:
        return None
    graph = placement.graph
    return {
        "nodes": [
            {
                "name": graph.names[constraint.node],
                "op": graph.ops[constraint.node],
                "device": constraint.device,
                "kernels": list(constraint.types),
                "source": placement.notes(constraint.node).at,
            }
            for constraint in found.constraints
        ],
        "path": [_report_value(placement, "path", join) for join in found.path],
        "text": list(map(str, state_conflict(placement))),
    }
