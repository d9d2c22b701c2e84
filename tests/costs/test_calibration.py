"""Fixed times read off probes whose steps are made up."""

from dataclasses import dataclass

import pytest

from simplace.costs.calibration import overheads
from simplace.costs.cost_model import Overheads


@dataclass(frozen=True)
class Run:
    name: str
    start: int
    end: int


def row(name: str, count: int, length: int, gap: int) -> list[Run]:
    return [Run(f"{name}{i}", i * (length + gap), i * (length + gap) + length) for i in range(count)]


def wide(gap: int, dispatch: int, queue: int) -> list[Run]:
    """Make one round: three ops are dispatched, the fourth is kept; the others are taken from the queue."""
    runs, now = [Run("join_", 0, 10)], 10
    for name, pause in (("wide_a", gap + 3 * dispatch), *((f"wide_{c}", gap + queue) for c in "bcd")):
        runs.append(Run(name, now + pause, now + pause + 10))
        now += pause + 10
    return runs


def beside(large: int, spins: int) -> list[Run]:
    """Make rounds of a small and a large op; the other thread starts at once as long as it spins."""
    runs, now, idle = [Run("join_1", 0, 5000)], 5000, 10**9
    for i in range(4):
        late, own = (1000, 500) if idle < spins else (30_000, 18_500)
        runs += [Run(f"large{i}", now + own, now + own + large), Run(f"small{i}", now + late, now + late + 6000)]
        done = max(now + own + large, now + late + 6000)
        idle = done + 300 - min(now + own + large, now + late + 6000)
        runs.append(Run(f"join{i}", done + 300, done + 5300))
        now = done + 5300
    return sorted(runs, key=lambda run: run.start)


def test_each_fixed_time_is_read_off_its_probe() -> None:
    dead = row("switch", 13, 100, 2000)
    found = overheads({
        "loop": [row("op", 50, 100, 300)] * 4,
        "alive": [row("switch", 13, 100, 500)] * 4,
        "dead": [dead] * 4,
        "wide": [wide(700, 200, 100)] * 4,
        "after 64": [row("product", 24, 6000, 700)] * 4,
        "after 256": [row("product", 24, 200_000, 2300)] * 4,
        "beside 96": [beside(15_000, 25_000)] * 4,
        "beside 128": [beside(28_000, 25_000)] * 4,
        "beside 256": [beside(200_000, 25_000)] * 4,
    })  # fmt: skip
    assert found.op_s == pytest.approx(300e-9)
    assert found.dead_s == pytest.approx(12 * 1500e-9 / 600)
    assert found.dispatch_s == pytest.approx(200e-9)
    assert found.queue_s == pytest.approx(100e-9)
    assert found.hand_off_s == pytest.approx(30e-6)
    assert found.wake_s == pytest.approx(18e-6)
    assert found.spin_hand_off_s == pytest.approx(1e-6)
    assert 0 < found.spin_s < 170e-6
    assert found.after_s == ((6e-6, pytest.approx(400e-9)), (200e-6, pytest.approx(2000e-9)))


def test_bookkeeping_after_a_kernel_is_interpolated() -> None:
    fixed = Overheads(after_s=((2e-6, 1e-6), (4e-6, 3e-6)))
    assert [fixed.after(s) for s in (0.0, 1e-6, 3e-6, 1.0)] == pytest.approx([0.0, 0.5e-6, 2e-6, 3e-6])
