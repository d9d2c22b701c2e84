"""What a placement is worth: loads, latency of blocks, makespan."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from simplace.optimize import Output, PlacementProblem
from simplace.optimize.block_latency import compute_latency
from simplace.optimize.max_load import compute_loads, compute_max_load
from simplace.optimize.step_makespan import compute_makespan, rank_upward
from tests.optimize.problems import chain, fork


def test_an_accelerator_pays_for_what_it_sends_and_receives():
    assert compute_loads(chain(1, 2, 4, cost=0.5), (1, 1, 2)) == [0, 3.5, 4.5]


def test_the_cpu_pays_for_no_transfer():
    assert compute_loads(chain(1, 2, 4, cost=0.5), (0, 1, 1)) == [10, 6.5, 0]


def test_an_output_is_sent_once_and_received_once_by_each_device():
    star = replace(chain(1, 1, 1, 1, 1, accelerators=3), outputs=(Output(0, (1, 2, 3, 4), 0.5),))
    assert compute_loads(star, (1, 2, 2, 3, 1)) == [0, 2.5, 2.5, 1.5]


def test_the_largest_load_counts():
    assert compute_max_load(fork(), (1, 1, 2, 1)) == 6 + 0.5 + 0.25


def test_blocks_that_follow_each_other_add_up():
    assert compute_latency(chain(1, 2, 4, cost=0.5), (1, 1, 2)) == 3.5 + 4.5


def test_blocks_run_side_by_side():
    """The CPU gives both their input at 2; the last node starts when the slower of them has sent its output."""
    assert compute_latency(fork(), (0, 1, 2, 0)) == 2 + max(0.5 + 4 + 0.25, 0.5 + 5 + 0.25) + 2


def test_nodes_on_the_cpu_run_side_by_side():
    assert compute_latency(fork(), (0, 0, 0, 0)) == 2 + 20 + 2


@pytest.mark.parametrize("device_of", [(1, 2, 1), (1, 0, 1)])
def test_a_path_that_comes_back_never_ends(device_of: tuple[int, ...]):
    assert compute_latency(chain(1, 2, 4), device_of) == inf


def test_an_accelerator_runs_a_node_at_a_time():
    assert compute_makespan(fork(), (1, 1, 1, 1)) == 11


def test_copies_take_their_time():
    """Node 2 has the larger rank, but waits for its copy; its result is copied back."""
    assert compute_makespan(fork(), (1, 1, 2, 1)) == 1 + 0.5 + 5 + 0.25 + 1


def test_copies_in_one_direction_follow_each_other():
    apart = PlacementProblem(
        accelerators=2,
        accelerator_bytes=8.0,
        accelerator_time=(1.0, 1.0, 1.0, 1.0),
        cpu_time=(1.0, 1.0, 1.0, 1.0),
        node_bytes=(0.0,) * 4,
        outputs=(Output(0, (1,), 3.0), Output(0, (2, 3), 3.0)),
        group_of=(0, 1, 2, 3),
    )
    assert compute_makespan(apart, (1, 2, 2, 2)) == 1 + 3 + 3 + 1 + 1
    assert compute_makespan(apart, (1, 2, 0, 0)) == 1 + 3 + 1 + 1  # two directions, one core
    assert compute_makespan(replace(apart, cpu_cores=2), (1, 2, 0, 0)) == 1 + 3 + 1


def test_the_longest_way_to_the_end_goes_first():
    assert rank_upward(fork()) == [1.5 + 0.5 + 12.5 + 0.25 + 1.5, 12 + 0.25 + 1.5, 12.5 + 0.25 + 1.5, 1.5]


def test_nodes_that_wait_for_each_other_never_end():
    ring = replace(chain(1, 1), outputs=(Output(0, (1,)), Output(1, (0,))))
    assert compute_makespan(ring, (1, 1)) == inf
    assert compute_latency(ring, (0, 0)) == inf
    assert compute_max_load(ring, (1, 1)) == 2


def test_limits():
    world = replace(chain(1, 1, 1, 1), group_of=(0, 0, 1, 2), pinned={3: 0}, cpu_time=(1, 1, inf, 1))
    assert world.keeps_limits((1, 1, 2, 0))
    assert not world.keeps_limits((1, 2, 2, 0)), "a group apart"
    assert not world.keeps_limits((1, 1, 1, 0)), "too many bytes"
    assert not world.keeps_limits((1, 1, 0, 0)), "no kernel"
    assert not world.keeps_limits((1, 1, 2, 2)), "not where it is pinned"
