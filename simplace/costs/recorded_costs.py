"""Costs recorded in a file: seconds of a node's CPU kernel on one thread, another model for the rest.

The file is JSON: `{"schema": "simplace/costs/1", "nodes": {"dense/MatMul": 0.0011, ...}}`, in seconds. With
`"intra_op": 2` the times were taken with kernels that share two threads, and are not divided again; with
`"includes_overheads": true` they hold the executor's bookkeeping; what is added is `"overheads"`, the fields of
`Overheads` in seconds, else `"gap"`, the seconds between two nodes on one thread, and hand-offs between threads.
`"averages"` are the seconds of kernels alone, from which the executor decides what is expensive. `"trips"` has how
often the bodies of loops ran for each time that they were entered, `"branches"` the outputs that predicates took.
`"cpu"` has what the CPU reaches (see `calibrated_cpu`); files from before have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from simplace.costs.calibrated_cpu import ENTRY, CalibratedCpu, parse_cpu, write_cpu
from simplace.costs.cost_model import (
    MEASURED_ERROR,
    CollectiveCall,
    CostModel,
    Fixed,
    KernelCost,
    OpCall,
    Overheads,
    PeerWay,
    Reliability,
)
from simplace.costs.outcomes import Outcomes
from simplace.costs.roofline import count_shards
from simplace.errors import MalformedError, SimplaceError, UnreadableError, join_choices
from simplace.graph.builder import SOURCE
from simplace.input_file import read_json

SCHEMA = "simplace/costs/1"
_TABLES = {"after_s": 2, "parked_s": 3}  # fields of `Overheads` that are tables, with the width of a row
_STRANGE = 0.1  # of the nodes of a file may be missing in a graph


@dataclass(frozen=True)
class RecordedCosts:
    """Cost model with recorded times of nodes on the CPU, and the model `rest` for everything else.

    `fixed` are the executor's fixed times where they were measured too, `averages` the times of kernels alone, as the
    executor's moving averages have them, `runs` the times that nodes take: both of a node's first run, of its second
    and so on, where these are known each. `outcomes` is what the loops and branches of the recorded step did, `cpu` the
    figures of the CPU that it ran on, where the file has them.
    """

    file: str
    seconds: Mapping[str, float]
    rest: CostModel
    intra_op: int = 1
    includes_overheads: bool = False
    gap_s: float = 0.0
    fixed: Overheads | None = None
    averages: Mapping[str, Sequence[float]] = field(default_factory=dict)
    runs: Mapping[str, Sequence[float]] = field(default_factory=dict)
    outcomes: Outcomes = field(default_factory=Outcomes)
    cpu: CalibratedCpu | None = None

    @property
    def name(self) -> str:
        """Name the model."""
        return f"recorded in {self.file}; for other nodes {self.rest.name}"

    @property
    def overheads(self) -> Overheads:
        """Return the executor's fixed times."""
        if self.fixed is not None:
            return self.fixed
        found = self.rest.overheads
        own = Overheads(self.gap_s, hand_off_s=found.hand_off_s, dead_s=self.gap_s)
        return own if self.includes_overheads else found

    @property
    def clock(self) -> float:
        """Return the clock of a CPU core."""
        return self.rest.clock

    def kernel(self, call: OpCall) -> KernelCost:
        """Estimate one execution."""
        if call.device_type != "CPU" or call.name not in self.seconds:
            return self.rest.kernel(call)
        seconds = self.seconds[call.name]
        parts = count_shards(seconds * self.clock) if self.intra_op == 1 else 1
        return KernelCost(seconds, shards=parts, averages_s=tuple(self.averages.get(call.name, ())),
                          runs_s=tuple(self.runs.get(call.name, ())), source="measured")  # fmt: skip

    def copy(self, size: int, source: str, target: str) -> float:
        """Estimate a copy."""
        return self.rest.copy(size, source, target)

    @property
    def peer_link(self) -> str:
        """Return the name of the links that join GPUs alone."""
        return self.rest.peer_link

    @property
    def peer_way(self) -> PeerWay:
        """Return how a copy from a GPU to another goes."""
        return self.rest.peer_way

    def assume_reliability(self, what: Fixed) -> Reliability:
        """Return where copies and fixed times come from: the executor's may have been measured, too."""
        is_measured = what == "executor" and self.fixed is not None
        return Reliability("measured", MEASURED_ERROR) if is_measured else self.rest.assume_reliability(what)

    def collective(self, call: CollectiveCall) -> KernelCost:
        """Estimate a member of a collective."""
        return self.rest.collective(call)

    def memory(self, device_type: str) -> int:
        """Return the bytes that a device has."""
        return self.rest.memory(device_type)

    def check_belongs_to(self, nodes: Iterable[str]) -> None:
        """Raise `SimplaceError` where many nodes that the file names are not in a graph.

        A few may be missing: a step that runs alone has constants that stand for what its caller hands over.
        """
        strange = sorted(set(self.seconds) - set(nodes) - {SOURCE})
        if len(strange) > _STRANGE * len(self.seconds):
            raise SimplaceError(
                f"{self.file}: these costs are of another graph: {len(strange)} of {len(self.seconds)} nodes are not "
                f"in this one, such as {join_choices(strange, 3)}"
            )

    def drop(self, nodes: Collection[str]) -> Self:
        """Return the model without the times of nodes that are other ops than those recorded."""
        return replace(self, seconds={name: time for name, time in self.seconds.items() if name not in nodes})


def cost_file(
    seconds: Mapping[str, float],
    *,
    intra_op: int,
    fixed: Overheads,
    tensorflow: str,
    averages: Mapping[str, float] | None = None,
    outcomes: Outcomes | None = None,
    cpu: CalibratedCpu | None = None,
) -> dict[str, object]:
    """Return the content of a cost file whose times include the executor's bookkeeping.

    >>> cost_file({"a": 0.5}, intra_op=1, fixed=Overheads(), tensorflow="2.21.0")["nodes"]
    {'a': 0.5}
    """
    return {
        "schema": SCHEMA,
        "tensorflow": tensorflow,
        "intra_op": intra_op,
        "includes_overheads": True,
        "overheads": asdict(fixed),
        "averages": dict(averages or {}),
        "nodes": dict(seconds),
        **(asdict(outcomes) if outcomes else {}),
        **({ENTRY: write_cpu(cpu)} if cpu else {}),
    }


def recorded_costs(file: str, rest: CostModel) -> RecordedCosts:
    """Read a cost file; raise `SimplaceError` for what is not one."""
    try:
        values = read_json(file)
    except MalformedError as error:
        raise SimplaceError(f"{file}: not a JSON file of costs: {error}") from None
    except UnreadableError as error:
        raise SimplaceError(
            f"{file}: cannot read the costs: {error}; costs are modelled, analytic, flat, or a cost file"
        ) from None
    nodes = values.get("nodes") if isinstance(values, dict) and values.get("schema") == SCHEMA else None
    if not isinstance(nodes, dict):
        raise SimplaceError(f'{file}: not a file of costs; one has "schema": "{SCHEMA}" and "nodes"')
    for name, seconds in (*nodes.items(), ("gap", values.get("gap", 0.0))):
        if not _is_number(seconds):
            raise SimplaceError(f"{file}: the cost of {name!r} is {seconds!r}; costs must be seconds, 0 or more")
    times = {name: float(seconds) for name, seconds in nodes.items()}
    intra_op = values.get("intra_op", 1)
    if not isinstance(intra_op, int) or intra_op < 1:
        raise SimplaceError(f"{file}: intra_op is {intra_op!r}; it must be a whole number above 0")
    is_whole = values.get("includes_overheads") is True
    fixed = _parse_overheads(file, values["overheads"]) if "overheads" in values else None
    averages = values.get("averages") or {}
    if not isinstance(averages, dict) or not all(map(_is_number, averages.values())):
        raise SimplaceError(f'{file}: "averages" maps nodes to seconds')
    known = {name: (float(seconds),) for name, seconds in averages.items()}
    outcomes = Outcomes(*(_parse_outcomes(file, what, values.get(what, {})) for what in ("trips", "branches")))
    gap = float(values.get("gap", 0.0))
    cpu = parse_cpu(file, values[ENTRY]) if ENTRY in values else None
    return RecordedCosts(file, times, rest, intra_op, is_whole, gap, fixed, known, outcomes=outcomes, cpu=cpu)


def _parse_outcomes(file: str, what: str, values: object) -> dict[str, tuple[int, ...]]:
    if not isinstance(values, dict) or not all(
        isinstance(counts, list) and counts and all(map(_is_count, counts)) for counts in values.values()
    ):
        raise SimplaceError(f'{file}: "{what}" maps names of nodes to lists of whole numbers, 0 or more')
    return {name: tuple(counts) for name, counts in values.items()}


def _parse_overheads(file: str, values: object) -> Overheads:
    known = {one.name for one in fields(Overheads)}
    if not isinstance(values, dict) or not set(values) <= known:
        raise SimplaceError(f'{file}: "overheads" has the fields {join_choices(known)}')
    times = {name: _parse_time(file, name, value) for name, value in values.items()}
    return Overheads(**times)  # type: ignore[arg-type]


def _parse_time(file: str, name: str, value: object) -> float | tuple[tuple[float, ...], ...]:
    """Check one field of `Overheads`: a number, or rows of a table of seconds."""
    width = _TABLES.get(name)
    if width is None:
        if not _is_number(value):
            raise SimplaceError(f'{file}: {name} of "overheads" is {value!r}; it must be a number, 0 or more')
        return float(value)  # type: ignore[arg-type]
    rows: Sequence[Any] = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(row, list | tuple) and len(row) == width and all(map(_is_number, row)) for row in rows):
        raise SimplaceError(f'{file}: {name} of "overheads" is a list of rows of {width} times in seconds')
    return tuple(tuple(float(one) for one in row) for row in rows)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
