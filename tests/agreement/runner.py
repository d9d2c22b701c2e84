"""Run generated programs under TensorFlow, many in one process, and compare each placement with simplace's."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from simplace.compare.compare_eager import compare_eager
from simplace.compare.compare_placements import Agreement, compare_placement
from simplace.compare.compare_transfers import CopyAgreement, compare_partitions
from simplace.compare.logged_functions import place_callees
from simplace.devices.device_set import DeviceSet, seen_from_the_first
from simplace.kernels.registry import KernelTable
from simplace.machine.machine import Machine
from simplace.oracle.observe import observe_script
from simplace.oracle.protocol import Options
from simplace.pipeline import EagerPlacer, place_program
from simplace.placement.placement import Placement
from simplace.program.observation import Observation, ObservedProgram
from simplace.program.program import Program
from tests.agreement.prelude import script

_NEVER = 1 << 30  # no program is stopped for being called often
_OWNER = re.compile(r"p\d+(?=_)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Record of what became of one placement: `differences` are lines for a reader, () where simplace agrees.

    `same` of the `nodes` that either places are placed alike; so are `copies_same` of the `copies` that either makes,
    both 0 where TensorFlow was not asked for its subgraphs.
    `refused` says that TensorFlow refused to place, `failed_later` that it placed all and failed at a later stage.
    """

    program: str
    name: str
    nodes: int
    same: int = 0
    differences: tuple[str, ...] = ()
    refused: bool = False
    failed_later: bool = False
    copies_same: int = 0
    copies: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Record of what became of the programs of one process.

    `failed` are programs that Python refused to build, with its reason; `ended` says how the process ended before
    its last program, "" where it did not, and `unreached` names the programs after that point.
    """

    outcomes: tuple[Outcome, ...]
    failed: Mapping[str, str]
    ended: str = ""
    unreached: tuple[str, ...] = ()


def run(programs: Mapping[str, str], machine: Machine, time_limit: float = 1800.0) -> Batch:
    """Place programs, given by names like "p12", with TensorFlow and with simplace."""
    with tempfile.TemporaryDirectory(prefix="agreement-") as folder:
        path = Path(folder, "programs.py")
        path.write_text(script(dict(programs)), encoding="utf-8")
        printed = Path(folder, "printed.txt")
        with printed.open("w") as out:
            options = Options(calls=_NEVER, timeout=time_limit)
            observation = observe_script(path, (), machine, options, out.fileno())
        words = [line.split(" ", 2) for line in printed.read_text(errors="replace").splitlines()]
        return _batch(programs, observation, words)


@dataclass(frozen=True, slots=True)
class EagerBatch:
    """Record of the eager ops of the programs of one process; `differences` are lines for a reader.

    `unreached` names the programs after one that ended the process.
    """

    same: int
    total: int
    refused: int
    differences: tuple[str, ...]
    unreached: tuple[str, ...]


def run_eager(programs: Mapping[str, str], machine: Machine, time_limit: float = 1800.0) -> EagerBatch:
    """Run programs op by op under TensorFlow, and compare the device of each op."""
    with tempfile.TemporaryDirectory(prefix="agreement-") as folder:
        path, printed = Path(folder, "programs.py"), Path(folder, "printed.txt")
        path.write_text(script(dict(programs), is_eager=True), encoding="utf-8")
        with printed.open("w") as out:
            observation = observe_script(path, (), machine, Options(calls=_NEVER, timeout=time_limit), out.fileno())
        words = [line.split(" ", 2) for line in printed.read_text(errors="replace").splitlines()]
        found = compare_eager_ops(observation, path.read_text(encoding="utf-8").splitlines())
    done = {parts[1] for parts in words if parts[0] in ("built", "failed")}
    unreached = tuple(name for name in programs if name not in done)
    return replace(found, unreached=unreached)


def compare_eager_ops(observation: Observation, lines: Sequence[str] = ()) -> EagerBatch:
    """Compare the device of each eager op of an observation; a difference tells its line out of the program's `lines`.

    Ops that the table of kernels does not know are those of a library that the program loads.
    """
    table = KernelTable.load(observation.registry) if observation.registry else KernelTable.shipped()
    placer = EagerPlacer(seen_from_the_first(each.name for each in observation.devices), table)
    ops = [each for each in observation.eager if table.op(each.op.op) is not None]
    agreement = compare_eager((f"{i}", placer.place(each.op), each) for i, each in enumerate(ops))
    told = []
    for each in agreement.differences:
        observed = ops[int(each.node.split(",")[0])]
        at = observed.op.at
        line = lines[int(at.rpartition(":")[2]) - 1].strip() if at and lines else at or "?"
        refused = observed.refused.message.splitlines()[0] if observed.refused else ""
        told.append(f"{line}: {observed.op}: {each.node}: {each.ours}, TensorFlow {each.theirs} {refused}")
    refusals = sum(each.refused is not None for each in ops)
    return EagerBatch(agreement.same, agreement.total, refusals, tuple(told), ())


def outcomes(observation: Observation, owner: str = "") -> list[Outcome]:
    """Compare every placement of an observation with simplace's."""
    table = KernelTable.load(observation.registry)
    devices = seen_from_the_first(each.name for each in observation.devices)
    asked = [observed for observed in observation.programs if observed.is_asked]
    direct = [outcome_of(observed, devices, table, owner) for observed in asked]
    return [*direct, *called_outcomes(observation, devices, table, owner)]


def called_outcomes(
    observation: Observation, devices: DeviceSet, table: KernelTable, owner: str = ""
) -> Iterator[Outcome]:
    """Compare the functions of datasets, and those of calls that were not inlined, that TensorFlow instantiated."""
    programs = [observed.program for observed in observation.programs if observed.is_asked]
    known = {"", *(program.function for program in programs)}
    if all(graph.function in known or graph.function.startswith("__wrapped__") for graph in observation.logged.graphs):
        return
    placed = list(_place_those_that_can(programs, devices, table))

    def place(program: Program, own: DeviceSet) -> Placement:
        return place_program(program, own, table)

    for placement, log in place_callees(placed, observation, devices, table, place):
        if log is not None:
            agreement = compare_placement(placement, log)
            lines = [
                f"{each.node} ({each.op}): {each.ours}, TensorFlow {each.theirs}" for each in agreement.differences
            ]
            name = placement.program.function or ""
            yield Outcome(owner or _find_owner(name), name, agreement.total, agreement.same, tuple(lines))


def _place_those_that_can(programs: list[Program], devices: DeviceSet, table: KernelTable) -> Iterator[Placement]:
    """Place programs; one on which simplace raises is an outcome already."""
    for program in programs:
        with suppress(Exception):
            yield place_program(program, devices, table)


def _find_owner(name: str) -> str:
    found = _OWNER.search(name)
    return found[0] if found else ""


def compared(observed: ObservedProgram, devices: DeviceSet, table: KernelTable, program: str = "") -> Outcome:
    """Place a program and list where TensorFlow's placement, or its refusal, is another one."""
    own = seen_from_the_first(each.name for each in observed.devices) if observed.devices else devices
    placement = place_program(observed.program, own, table)
    agreement = compare_placement(placement, observed.log, observed.refused)
    lines = [f"{each.node} ({each.op}): {each.ours}, TensorFlow {each.theirs}" for each in agreement.differences]
    name = observed.program.function or _first_name(observed)
    if observed.refused and not placement.refusal and {node.name for node in placement.nodes} <= _names(observed):
        return Outcome(program, name, agreement.total, agreement.same, tuple(lines), failed_later=True)
    lines += _refusals(placement, observed, agreement)
    partitionings = compare_partitions(placement, observed.partitionings) or CopyAgreement(0, 0)
    lines += [
        f"copy of {each.transfer.tensor}: {each.ours}, TensorFlow {each.theirs}" for each in partitionings.differences
    ]
    refused = observed.refused is not None
    return Outcome(
        program,
        name,
        agreement.total,
        agreement.same,
        tuple(lines),
        refused,
        copies_same=partitionings.same,
        copies=partitionings.total,
    )


def outcome_of(observed: ObservedProgram, devices: DeviceSet, table: KernelTable, owner: str = "") -> Outcome:
    """Compare one placement; an exception of simplace is a difference too."""
    name = observed.program.function or _first_name(observed)
    program = owner or _find_owner(name)
    try:
        return compared(observed, devices, table, program)
    except Exception as error:  # the run goes on, and the report names it
        return Outcome(program, name, 0, 0, (f"simplace raised {type(error).__name__}: {error}",))


def _names(observed: ObservedProgram) -> set[str]:
    return {entry.name for entry in observed.log}


def _first_name(observed: ObservedProgram) -> str:
    names = (node.name for node in observed.program.graph.nodes)
    return next((name.replace("/", "_", 1) for name in names if _OWNER.match(name.replace("/", "_", 1))), "")


def _refusals(placement: Placement, observed: ObservedProgram, agreement: Agreement) -> list[str]:
    ours, theirs = agreement.refusals
    if ours != theirs:
        told = observed.refused.message if observed.refused else placement.refusal.message if placement.refusal else ""
        return [f"simplace: {ours or 'placed'}, TensorFlow: {theirs or 'placed'}: {told}"]
    if placement.refusal is None or observed.refused is None:
        return []
    mine, other = essence(placement.refusal.message), essence(observed.refused.message)
    return [] if mine in other else [f"simplace says {mine!r}, TensorFlow {other!r}"]


_DETAILS = re.compile(
    r"((?<=[A-Za-z0-9])\[[^\n]*?\](?=\()| with these attrs: \[.*?\]\n|\n?\s*Node attrs: [^\n]*"
    r"|\nRegistered kernels:\n(?:  [^\n]*\n)*|possible_devices_=\[[^\]]*\]|assigned_device_name_index_=-?\d+"
    r"|(?<=possible_devices_=\[\])\n.*?\n\nColocation members)",
    re.DOTALL,
)


def essence(message: str) -> str:
    """Take out of a refusal's text what TensorFlow prints in the order of a hash map or counts by process.

    >>> essence("No kernel\\nRegistered kernels:\\n  device='CPU'\\n")
    'No kernel'
    """
    return "\n".join(line.rstrip() for line in _DETAILS.sub("", message).strip().splitlines())


def _batch(programs: Mapping[str, str], observation: Observation, words: list[list[str]]) -> Batch:
    failed = {parts[1]: parts[2] for parts in words if len(parts) == 3 and parts[0] == "failed"}
    begun = [parts[1] for parts in words if parts[0] == "begin"]
    done = {parts[1] for parts in words if parts[0] in ("built", "failed")}
    unreached = tuple(name for name in programs if name not in done)
    ended = ""
    if unreached:
        ended = f"{observation.failure.text if observation.failure else 'ended'} in {begun[-1] if begun else '?'}"
    return Batch(tuple(outcomes(observation)), failed, ended, unreached)
