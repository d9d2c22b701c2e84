"""A user's requirements on a placement, and the nodes that do not meet them.

A requirement is written `NODES=DEVICES`, or `NODES!=DEVICES` for what must not be (`NODES=!DEVICES` too). NODES is a
glob over node names, or over op types after `op:`; a glob without a slash is also compared with the last part of a
name, as in .gitignore. DEVICES is a device in any of TensorFlow's spellings, in part or whole, several joined by `|`.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import Device
from simplace.errors import RequirementError
from simplace.explain import reasons as why
from simplace.explain.sentences import state_conflict, state_reason
from simplace.placement.placement import Placement
from simplace.result import Placed, Result

_OF_OPS = "op:"
_REMOTE = re.compile(r"(?P<job>[A-Za-z]\w*)/(?P<task>\d+)/(?P<device>[^/]+)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """Record of a requirement: all nodes of a glob are on one of some devices, or on none of them (`forbids`)."""

    nodes: str
    devices: tuple[DeviceName, ...]
    forbids: bool
    text: str

    def concerns(self, name: str, op: str) -> bool:
        """Return whether a node matches.

        >>> parse_requirement("MatMul*=gpu").concerns("dense/MatMul_1", "MatMul")
        True
        >>> parse_requirement("op:Mat*=gpu").concerns("x", "MatMul")
        True
        >>> parse_requirement("a/MatMul=gpu").concerns("b/a/MatMul", "MatMul")
        False
        """
        if self.nodes.startswith(_OF_OPS):
            return _compile_glob(self.nodes.removeprefix(_OF_OPS)).match(op) is not None
        glob = _compile_glob(self.nodes)
        return glob.match(name) is not None or (
            "/" not in self.nodes and glob.match(name.rpartition("/")[2]) is not None
        )

    def allows(self, device: Device) -> bool:
        """Return whether a matching node may be on a device."""
        return self.names(device) != self.forbids

    def names(self, device: Device) -> bool:
        """Return whether a device is one of those named."""
        return any(spec.matches(device.spec) for spec in self.devices)


@dataclass(frozen=True, slots=True)
class Violation:
    """Record of a node that is not where it must be; `device` is the short name, "" where it was not placed at all.

    `program` and `node` are "" for a requirement that matches no node. `source` is the user's line, "" if unknown.
    """

    requirement: Requirement
    program: str
    node: str
    op: str
    device: str
    source: str
    because: str


def parse_requirement(text: str) -> Requirement:
    """Read a requirement; raise `RequirementError` for what is not one.

    >>> found = parse_requirement("op:MatMul=gpu:0|gpu:1")
    >>> found.nodes, [str(spec) for spec in found.devices], found.forbids
    ('op:MatMul', ['/device:GPU:0', '/device:GPU:1'], False)
    >>> parse_requirement("dense/*!=cpu").forbids
    True
    """
    nodes, equals, devices = text.rpartition("=")
    forbids = nodes.endswith("!") or devices.lstrip().startswith("!")
    nodes, devices = nodes.removesuffix("!").strip(), devices.lstrip().removeprefix("!")
    if not equals or not nodes.removeprefix(_OF_OPS) or not devices.strip():
        raise RequirementError(
            f"cannot read the requirement {text!r}; write nodes and devices, such as 'MatMul*=gpu:*', "
            "'op:MatMul=gpu:0|gpu:1' or 'dense/*!=cpu:*'"
        )
    return Requirement(nodes, tuple(_parse_device(part.strip(), text) for part in devices.split("|")), forbids, text)


def find_violations(result: Result, requirements: Iterable[Requirement]) -> tuple[Violation, ...]:
    """Return what does not meet the requirements, by requirement, program and node id.

    A requirement that matches no node is a violation too: its author expects one.
    """
    return tuple(found for requirement in requirements for found in _check_requirement(result, requirement))


def _check_requirement(result: Result, requirement: Requirement) -> Iterator[Violation]:
    meant = [(placed, node) for placed in result for node in _match_nodes(placed.placement, requirement)]
    if not meant:
        yield Violation(requirement, "", "", "", "", "", _no_node(result, requirement))
    unknown = not requirement.forbids and not any(requirement.names(device) for device in result.devices)
    hint = f" No device here has that name; there are {result.devices}." if unknown else ""
    for placed, node in meant:
        device = placed.placement.devices.find(placed.placement.device(node))
        if device is None or not requirement.allows(device):
            yield _make_violation(requirement, placed, node, device, hint)


def _match_nodes(placement: Placement, requirement: Requirement) -> list[int]:
    graph = placement.graph
    return [i for i in graph.op_ids if requirement.concerns(graph.names[i], graph.ops[i])]


def _make_violation(requirement: Requirement, placed: Placed, node: int, device: Device | None, hint: str) -> Violation:
    placement = placed.placement
    name, op, at = placement.graph.names[node], placement.graph.ops[node], placement.notes(node).at
    if device is None:
        return Violation(requirement, placed.title, name, op, "", at, _explain_refusal(placement) + hint)
    because = str(state_reason(placement, why.find_reason(placement, node)))
    return Violation(requirement, placed.title, name, op, device.short, at, because + hint)


def _explain_refusal(placement: Placement) -> str:
    assert placement.refusal is not None, "only a refused placement leaves nodes out"
    message = placement.refusal.message.splitlines()[0]
    return " ".join([f"TensorFlow refuses to place this graph: {message}", *map(str, state_conflict(placement))])


def _no_node(result: Result, requirement: Requirement) -> str:
    wanted = requirement.nodes.removeprefix(_OF_OPS)
    graphs = [placed.placement.graph for placed in result]
    if requirement.nodes.startswith(_OF_OPS):
        known, what = {op for graph in graphs for op in graph.ops[2:]}, "op type"
    else:
        known, what = {name for graph in graphs for name in graph.names[2:]}, "node name"
    close = difflib.get_close_matches(wanted.replace("*", ""), sorted(known), n=3, cutoff=0.4)
    hint = f"; the closest are {', '.join(close)}" if close else ""
    return f"No {what} matches {wanted!r}{hint}."


def _parse_device(part: str, text: str) -> DeviceName:
    remote = _REMOTE.fullmatch(part)
    if remote is not None:
        part = f"/job:{remote['job']}/task:{remote['task']}/device:{remote['device']}"
    elif not part.startswith("/"):
        part = f"/device:{part}"
    spec = DeviceName.parse(part)
    if spec is None:
        raise RequirementError(
            f"cannot read the device {part.removeprefix('/device:')!r} in the requirement {text!r}; write one such as "
            "gpu:0, gpu:* or /job:worker/task:0/device:GPU:1"
        )
    return spec if spec.type is None else spec._replace(type=spec.type.upper())


@lru_cache(maxsize=1024)
def _compile_glob(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))
