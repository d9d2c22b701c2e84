"""Write in one line how a step is spread over devices, from its graph alone: the title of an overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from simplace.explain.sentences import summarize_conflict
from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import DATAFLOW_ONLY, is_write
from simplace.program.known_names import strip_number
from simplace.result import Placed
from simplace.views.figures.boxes import BoxPaths
from simplace.views.figures.drawn_graph import DrawnGraph
from simplace.views.figures.granted_requests import was_granted
from simplace.views.figures.step_parts import StepPart
from simplace.views.text.quantities import format_count
from simplace.views.text.tables import shorten_device
from simplace.views.text.traffic_phrases import format_sent

_ALIKE = 0.8  # of the ops of a device: with so many in common, devices do the same
_LISTED = 3  # devices that are listed by name
# Ops outside of the main device that are told as an exception: at most so many of another type of device, and this
# share of all ops at most, or that share where they are on devices of the same type.
_FEW, _FEW_ELSEWHERE, _FEW_ALIKE = 3, 0.2, 0.05
_SPLITS = frozenset({"Split", "SplitV", "StridedSlice", "Slice", "Unpack"})


def write_message(placed: Placed) -> str:
    """Return what a figure says: on which devices a step runs, how it is split over them, and what it sends."""
    placement = placed.placement
    if placement.refusal is not None:
        return ": ".join(filter(None, (f"TensorFlow refuses {placed.title}", summarize_conflict(placement))))
    drawn = BoxPaths.of(placement)
    graph, parts = drawn.graph, drawn.parts
    counts = Counter(decision.device for decision in placement.decisions.values())
    if not counts:
        return placed.title
    (main, _), *others = counts.most_common()
    elsewhere = sum(count for _, count in others)
    if not others:
        return f"All on {_short(placed, main)}{_tell_refused(placed)}"
    sent = _tell_sent(placed)
    if replicas := _find_replicas(drawn):
        told = [where] if (where := _tell_variables(placed, graph, parts, replicas)) else []
        what = "Data parallel on" if _shares_data(graph, parts, replicas) else "The same ops on"
        return f"{what} {_count_devices(placed, replicas)}: {', '.join([*told, sent])}"
    if _is_exception(placed, main, counts):
        where = f" on {_short(placed, others[0][0])}" if len(others) == 1 else ""
        return f"All on {_short(placed, main)} but {format_count(elsewhere, 'op')}{where}: {sent}"
    if holders := _find_holders(graph, parts):
        return f"Model parallel on {_count_devices(placed, holders)}: {sent}"
    used = [device.name for device in placement.devices if device.name in counts]
    where = _list_devices(placed, used) if len(used) <= _LISTED else _count_devices(placed, used)
    return f"Split over {where}: {sent}"


def _is_exception(placed: Placed, main: str, counts: Counter[str]) -> bool:
    types = {device: placed.placement.devices.by_name[device].type for device in counts}
    total, rest = counts.total(), counts.total() - counts[main]
    alike = sum(count for device, count in counts.items() if types[device] == types[main]) - counts[main]
    return alike <= _FEW_ALIKE * total and (rest <= _FEW_ALIKE * total or _FEW >= rest <= _FEW_ELSEWHERE * total)


def _short(placed: Placed, device: str) -> str:
    return shorten_device(placed.placement, device)


def _list_devices(placed: Placed, devices: Sequence[str]) -> str:
    names = [_short(placed, device) for device in devices]
    if len(names) > _LISTED:
        return format_count(len(names), "device")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _count_devices(placed: Placed, devices: Sequence[str]) -> str:
    types = {placed.placement.devices.by_name[device].type for device in devices}
    return format_count(len(devices), types.pop() if len(types) == 1 else "device")


def _tell_refused(placed: Placed) -> str:
    placement = placed.placement
    count = sum(not was_granted(placement, node) for node in placement.decisions)
    return f"; {format_count(count, 'op')} requested another device" if count else ""


def _tell_sent(placed: Placed) -> str:
    traffic = placed.traffic
    parts = [f"{one.kind} ×{one.volume.count:,}" for one in traffic.collectives if not one.is_copied]
    copies = traffic.copies
    if copies.count:
        parts.append(format_sent("copy", copies))
    return ", ".join(parts) or "nothing is copied"


@lru_cache(maxsize=1)  # one placement is drawn in several sizes, all with this title
def _find_replicas(drawn: BoxPaths) -> list[str]:
    """Return the devices that do the same, each for itself: accelerators if there are any, [] for fewer than two."""
    graph, parts = drawn.graph, drawn.parts
    own: dict[str, Counter[tuple[str, ...]]] = {}
    for node in graph.keepers:
        device, op = graph.placement.device(node), graph.placement.graph.ops[node]
        if op not in DATAFLOW_ONLY and device and parts[node].kind not in ("variables", "input", "result"):
            own.setdefault(device, Counter())[(op, *map(strip_number, graph.paths[node]))] += 1
    types = {device: graph.placement.devices.by_name[device].type for device in own}
    found = [device for device in own if types[device] != "CPU"] or list(own)
    if len(found) < 2 or len({types[device] for device in found}) > 1:
        return []
    least = min(own[one].total() for one in found)
    common = own[found[0]].copy()
    for device in found[1:]:
        common &= own[device]
    if common.total() < _ALIKE * least:
        return []
    depends = [_measure_dependence(graph, one, other) for one, other in combinations(found, 2) if one == found[0]]
    depends += [_measure_dependence(graph, other, one) for one, other in combinations(found, 2) if one == found[0]]
    return found if max(depends) <= 0.5 else []


def _measure_dependence(graph: DrawnGraph, first: str, second: str) -> float:
    """Return which share of the ops of `second` depends on ops of `first`, other than on variables and inputs.

    What only says whether something runs, such as whether any replica has a batch left, does not count.
    """
    device, ops = graph.placement.device, graph.placement.graph.ops
    reached = {node for node in graph.keepers if device(node) == first and ops[node] not in DATAFLOW_ONLY
               and graph.before[node] and not (_only_hands_out(ops[node]) or _only_decides(graph, node))}  # fmt: skip
    waiting = list(reached)
    while waiting:
        for after in graph.after[waiting.pop()]:
            if after not in reached and not _only_decides(graph, after):
                reached.add(after)
                waiting.append(after)
    own = [node for node in graph.keepers if device(node) == second and ops[node] not in DATAFLOW_ONLY]
    return sum(node in reached for node in own) / len(own)


def _only_hands_out(op: str) -> bool:
    return op in _SPLITS or op.startswith("Iterator")


def _only_decides(graph: DrawnGraph, node: int) -> bool:
    """Return whether all that a node puts out are bools."""
    return set(graph.placement.graph.out_types[node]) == {DataType.DT_BOOL}


def _shares_data(graph: DrawnGraph, parts: Mapping[int, StepPart], replicas: Sequence[str]) -> bool:
    """Return whether each replica works on data of its own: a slice of a batch, or a dataset's element."""
    device, ops = graph.placement.device, graph.placement.graph.ops
    if any(part.kind == "gradients" for part in parts.values()):
        return True
    fed = {device(reader) for node in graph.keepers if _only_hands_out(ops[node]) for reader in graph.after[node]}
    return fed.issuperset(replicas)


def _tell_variables(placed: Placed, graph: DrawnGraph, parts: Mapping[int, StepPart], replicas: Sequence[str]) -> str:
    """Return where the variables of the model are, "" where there are none."""
    counts = Counter(graph.placement.device(node) for node, part in parts.items() if part == StepPart("variables"))
    if not counts:
        return ""
    if set(counts) == set(replicas) and max(counts.values()) - min(counts.values()) <= 1 < min(counts.values()):
        return "variables on each"
    names = [device.name for device in placed.placement.devices if device.name in counts]
    return f"variables on {_list_devices(placed, names)}"


def _find_holders(graph: DrawnGraph, parts: Mapping[int, StepPart]) -> list[str]:
    """Return the accelerators that compute with different variables, of which one feeds another; [] for fewer than two.

    What a placement of one model over several devices is called depends on nothing but these.
    """
    if not any(part.kind == "gradients" or graph.placement.notes(node).known_as for node, part in parts.items()):
        return []  # not known to be a model
    device, ops = graph.placement.device, graph.placement.graph.ops
    read: dict[str, set[int]] = {}
    for node, part in parts.items():
        if part.kind == "variables":
            for reader in graph.after[node]:
                if not is_write(ops[reader]):
                    read.setdefault(device(reader), set()).add(node)
    found = [one for one in read if graph.placement.devices.by_name[one].type != "CPU"]
    apart = len(found) > 1 and all(read[one].isdisjoint(read[other]) for one, other in combinations(found, 2))
    return found if apart else []
