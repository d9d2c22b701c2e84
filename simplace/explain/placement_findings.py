"""All findings about a placement, with what they cost a step, the dearest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from simplace.explain import findings
from simplace.explain.copy_tensor import find_uncopied_variants
from simplace.explain.finding import Failure, Finding
from simplace.graph.dtypes import DataType
from simplace.partition.copies import Communication
from simplace.placement.collective_groups import find_incomplete_groups
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import find_clusters

if TYPE_CHECKING:
    from simplace.explain.finding_costs import CopyCosts

# A placement that sends nothing needs no costs, and no gradients looked at: the functions import what they need.
_LITTLE_S = 1e-4  # what is harmless is not worth a line for less of a step


def find_in_placement(placement: Placement, sent: Communication, busy: Collection[str] = ()) -> list[Finding]:
    """Return the findings of one placement, ranked; `sent` is what a step sends, `busy` the devices used elsewhere."""
    is_main = placement.program.caller is None
    return rank_findings([
        *_find_failures(placement),
        *find_ungranted(placement, sent),
        *find_sent(placement, sent),
        *(findings.idle_gpus([placement], placement.devices, busy) if is_main else ()),
    ])  # fmt: skip


def _find_failures(placement: Placement) -> list[Failure]:
    """Return what fails; most placements have nothing that could."""
    if not any(
        True for find in (find_clusters, find_uncopied_variants, find_incomplete_groups) for _ in find(placement)
    ):
        return []
    from simplace.explain.failures import find_failures

    return find_failures(placement)


def find_ungranted(placement: Placement, sent: Communication) -> list[findings.RequestNotGranted]:
    """Return the requests that were not granted; a missing kernel costs the copies to the other device and back."""
    found = findings.ungranted_requests(placement)
    if not (sent.copies.between_devices and any(isinstance(one, findings.NoKernel) for one in found)):
        return found
    from simplace.explain.finding_costs import CopyCosts

    costs = CopyCosts(placement, sent.copies)
    return [costs.add_cost(one) if isinstance(one, findings.NoKernel) else one for one in found]


def find_sent(placement: Placement, sent: Communication, types: Iterable[DataType] = ()) -> Iterator[Finding]:
    """Yield what makes a step send more than it has to; `types` are as for `host_memory`.

    Integers that go to the CPU and back for next to nothing are shapes and indices, as those in host memory are.
    """
    detours, on_host = findings.detours_over_cpu(placement), findings.host_memory(placement, types)
    if not (detours or on_host or sent.collectives or sent.copies.between_devices):
        return
    from simplace.explain.finding_costs import CopyCosts

    costs = CopyCosts(placement, sent.copies)
    if placement.placed.is_whole:
        yield from _find_far(costs, sent)
    yield from (one for one in map(costs.add_cost, detours) if not one.of_integers or one.cost.seconds >= _LITTLE_S)
    yield from map(costs.add_cost_within, on_host)


def _find_far(costs: CopyCosts, sent: Communication) -> Iterator[Finding]:
    """Yield what is far from where it belongs."""
    if any(one.kind == "all-gather" for one in sent.collectives):
        from simplace.explain.sparse_findings import sparse_gathers

        yield from sparse_gathers(costs, sent.collectives)
    if sent.copies.between_devices:
        from simplace.explain.copy_findings import host_round_trips, variables_far
        from simplace.explain.gradient_findings import gradients_elsewhere
        from simplace.explain.slot_findings import slots_elsewhere

        yield from gradients_elsewhere(costs)
        yield from slots_elsewhere(costs)
        yield from variables_far(costs)
        yield from map(costs.add_cost, host_round_trips(costs.placement))


def rank_findings(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings: errors, then the dearest first, then those without a cost, what is harmless last; ties stay."""
    return sorted(found, key=lambda one: (one.severity != "error", one.is_harmless, -one.cost.seconds))


def is_folded(finding: Finding) -> bool:
    """Return whether a finding is harmless, and costs next to nothing."""
    return finding.is_harmless and not is_dear(finding)


def is_dear(finding: Finding) -> bool:
    """Return whether a finding is known to cost a step a tenth of a millisecond or more."""
    return finding.cost.seconds >= _LITTLE_S
