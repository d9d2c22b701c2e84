"""Fair rates of what passes shared links: what max-min fairness demands, for every set of demands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.executor.fair_shares import Demand, FairRate, share_fairly

LINKS = 4
RATES = st.floats(0.01, 100.0)
DEMANDS = st.lists(
    st.builds(Demand, RATES, st.dictionaries(st.integers(0, LINKS - 1), st.sampled_from((0.5, 1.0, 2.0)))), max_size=9
)
CAPACITIES = st.lists(RATES, min_size=LINKS, max_size=LINKS)


@given(demands=DEMANDS, capacities=CAPACITIES)
def test_no_copy_exceeds_its_rate_and_no_link_its_capacity(demands: list[Demand], capacities: list[float]) -> None:
    found = share_fairly(demands, capacities)
    assert all(0 < fair.rate <= demand.limit for demand, fair in zip(demands, found, strict=True))
    for link, capacity in enumerate(capacities):
        carried = sum(fair.rate * demand.loads.get(link, 0) for demand, fair in zip(demands, found, strict=True))
        assert carried <= capacity * (1 + 1e-9)


@given(demands=DEMANDS, capacities=CAPACITIES)
def test_a_copy_below_its_rate_has_a_full_link_where_none_has_more(
    demands: list[Demand], capacities: list[float]
) -> None:
    found = share_fairly(demands, capacities)
    for demand, fair in zip(demands, found, strict=True):
        if fair.full < 0:
            assert fair.rate == demand.limit
            continue
        assert fair.full in demand.loads
        others = [(one.rate, each.loads.get(fair.full, 0)) for each, one in zip(demands, found, strict=True)]
        assert sum(rate * load for rate, load in others) == pytest.approx(capacities[fair.full])
        assert max(rate for rate, load in others if load) <= fair.rate * (1 + 1e-9)


def test_what_one_copy_leaves_goes_to_the_others() -> None:
    """Three copies share a link, of which one is held up elsewhere."""
    demands = [Demand(9.0, {0: 1}), Demand(9.0, {0: 1}), Demand(9.0, {0: 1, 1: 1})]
    assert share_fairly(demands, [9.0, 1.0]) == [FairRate(4.0, 0), FairRate(4.0, 0), FairRate(1.0, 1)]


def test_what_passes_a_link_twice_takes_twice_its_rate() -> None:
    assert share_fairly([Demand(9.0, {0: 2}), Demand(9.0, {0: 1})], [9.0]) == [FairRate(3.0, 0), FairRate(3.0, 0)]


def test_nothing_wants_nothing() -> None:
    assert share_fairly([], [1.0]) == []
    assert share_fairly([Demand(5.0, {})], []) == [FairRate(5.0)]
