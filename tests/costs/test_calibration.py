"""Fixed times read off probes whose steps are made up."""

from dataclasses import dataclass

import pytest

from simplace.costs.calibration import derive_overheads, measure_sharing
from simplace.costs.cost_model import Overheads


@dataclass(frozen=True)
class Run:
    name: str
    start: int
    end: int
    label: int = 30
    names: int = 0


@dataclass(frozen=True)
class Step:
    runs: list[Run]
    pace: float = 0.0


def steps(probes: dict[str, list[list[Run]]]) -> dict[str, list[Step]]:
    found = {name: [Step(runs) for runs in found] for name, found in probes.items()}
    return {"small, long names": [Step(named(probes["small"][0]))], **new(300, 600), **found}


def named(runs: list[Run], byte: int = 0, name: int = 0) -> list[Run]:
    """Give each node two long names and a label of 100 bytes more; they take time, the names before a first run."""
    late, found, seen = 0, [], {runs[0].name}
    for i, run in enumerate(runs):
        late += 0 if i == 0 else 100 * byte + (0 if run.name in seen else 2 * name)
        seen.add(run.name)
        found.append(Run(run.name, run.start + late, run.end + late, run.label + 100, 2))
    return found


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
    """Make rounds of a large and a small op; the other thread starts at once as long as it spins."""
    runs, now, idle = [Run("join_1", 0, 5000)], 5000, 10**9
    for i in range(4):
        late, own = (1000, 500) if idle < spins else (30_000, 18_500)
        runs += [Run(f"one{i}", now + own, now + own + large), Run(f"other{i}", now + late, now + late + 6000)]
        done = max(now + own + large, now + late + 6000)
        idle = done + 300 - min(now + own + large, now + late + 6000)
        runs.append(Run(f"join{i}", done + 300, done + 5300))
        now = done + 5300
    return sorted(runs, key=lambda run: run.start)


def looped(hot: int, after_long: int) -> list[Run]:
    """Make seven iterations of a short and a long node."""
    runs, now = [Run("_SOURCE", 0, 10)], 10
    for _ in range(7):
        for name, length in (("Neg", 900), ("Sum", 2000)):
            now += hot + (after_long if runs[-1].name == "while/Sum" else 0)
            runs.append(Run(f"while/{name}", now, now + length))
            now += length
    return runs


def fresh(hot: int, first: int, code: int = 0, count: int = 24) -> list[Run]:
    """Make nodes of two types, each of which costs `first` more, since it is new, and the two first ones `code`."""
    runs, now = [Run("_SOURCE", 0, 10)], 10
    for i in range(count):
        now += hot + first + (code if i < 2 else 0)
        runs.append(Run(f"{('Neg', 'Sum')[i % 2]}_{i // 2}", now, now + 900))
        now += 900
    return runs


def new(hot: int, first: int, code: int = 0, byte: int = 0, name: int = 0, pace: float = 0.0) -> dict[str, list[Step]]:
    """Make the probes of new nodes, on one thread and on two."""
    runs = fresh(hot, first, code)
    both = ((", 2 cells", runs), (", 2 cells, long names", named(runs, byte, name)))
    return {f"new on {kind}{end}": [Step(one, pace)] for kind in ("one thread", "two threads") for end, one in both}


def two_loops(hot: int, sharing: int, trips: int, contention: int = 1) -> list[Run]:
    """Make two loops on two threads at once; the longer one goes on alone, and is faster then."""
    runs, length, both = [], 100 * contention, contention * (100 + hot) + sharing
    for name, begin in (("short", both // 2), ("long", 0)):
        runs += [Run(f"{name}/{i % 2}", begin + i * both, begin + i * both + length) for i in range(trips)]
    alone, end = 100 + hot, (trips - 1) * both
    runs += [Run(f"long/{i % 2}", end + i * alone, end + i * alone + 100) for i in range(1, trips)]
    return sorted(runs, key=lambda run: run.start)


QUIET = {
    name: [Step(runs, 300.0)]
    for name, runs in {
        "small": looped(300, 0),
        "small, long names": named(looped(300, 0)),
        "shared": two_loops(300, 80, 60),
        "alive": row("switch", 13, 100, 900),
        "few dead": row("switch", 13, 100, 900),
        "dead": row("switch", 13, 100, 900),
        "wide": wide(700, 200, 100),
        "after 64": row("product", 24, 6000, 700),
    }.items()
} | new(300, 600, pace=300.0)


def test_each_fixed_time_is_read_off_its_probe() -> None:
    dead = row("switch", 13, 100, 2000)
    found = derive_overheads(steps({
        "small": [looped(300, 150)] * 4,
        "small, long names": [named(looped(300, 150), byte=1)] * 4,
        "shared": [two_loops(300, 80, 60)] * 4,
        "alive": [row("switch", 13, 100, 500)] * 4,
        "few dead": [row("switch", 13, 100, 800)] * 4,
        "dead": [dead] * 4,
        "wide": [wide(700, 200, 100)] * 4,
        "after 64": [row("product", 24, 6000, 700)] * 4,
        "after 256": [row("product", 24, 200_000, 2300)] * 4,
        "beside 96": [beside(15_000, 25_000)] * 4,
        "beside 128": [beside(28_000, 25_000)] * 4,
        "beside 256": [beside(200_000, 25_000)] * 4,
    }) | new(300, 600, 400, byte=1, name=70))  # fmt: skip
    assert found.op_s == pytest.approx(270e-9)  # without a label of 30 bytes
    assert (found.label_s, found.name_s) == pytest.approx((1e-9, 70e-9))
    assert found.first_s == pytest.approx(600e-9)
    assert found.code_s == pytest.approx(400e-9)
    assert found.shared_s == pytest.approx(80e-9, rel=0.05)
    assert (found.dead_s, found.to_dead_s) == pytest.approx((1200e-9 / 48, 250e-9))  # two take 300 ns
    assert found.dispatch_s == pytest.approx(200e-9)
    assert found.queue_s == pytest.approx(100e-9)
    assert [found.hand_off_s, found.wake_s] == pytest.approx([30e-6, 18e-6])
    assert list(found.waking(1.0)) == pytest.approx([30e-6, 18e-6])
    assert found.spin_hand_off_s == pytest.approx(1e-6)
    assert 0 < found.spin_s < 170e-6
    more = {round(1e9 * length): round(1e9 * more) for length, more in found.after_s}
    assert more == {900: 0, 2000: 150, 6000: 150, 200_000: 1400}


def test_what_sharing_costs_is_told_from_cores_that_are_halves_of_one() -> None:
    assert measure_sharing(two_loops(300, 80, 60)) == pytest.approx((1.0, 80.0), rel=0.05)
    assert measure_sharing(two_loops(300, 80, 60, contention=2)) == pytest.approx((2.0, 80.0), rel=0.06)
    assert measure_sharing(two_loops(300, 80, 10)) is None  # too few gaps to tell anything


def test_fetching_data_from_memory_takes_as_long_at_every_pace() -> None:
    slow, rest = 3, {
        "shared": [two_loops(300, 80, 60)],
        "alive": [row("switch", 13, 100, 300 + 600)],
        "few dead": [row("switch", 13, 100, 300 + 60 + 600)],
        "dead": [row("switch", 13, 100, 300 + 600)],
        "wide": [wide(300 + 600 + 50, 200, 100)],
        "after 64": [row("product", 24, 6000, 300 + 600 + 50)],
        "beside 96": [beside(15_000, 25_000)],
    }  # fmt: skip
    at_slow_pace = {
        "small": [looped(slow * 300, 0)],
        "dead": [row("switch", 13, slow * 100, slow * (300 + 1500) + 600)],
        "wide": [wide(slow * (300 + 50) + 600, slow * 200, slow * 100)],
        "after 256": [row("product", 24, slow * 200_000, slow * (300 + 500) + 600)],
    }
    probes: dict[str, list[Step]] = {name: [Step(runs[0], 290.0)] for name, runs in rest.items()}
    probes |= {name: [Step(runs[0], slow * 290.0)] for name, runs in at_slow_pace.items()}
    probes |= {"small, long names": [Step(named(at_slow_pace["small"][0], byte=slow), slow * 290.0)]}
    probes |= new(slow * 300, 600, byte=slow, name=70, pace=slow * 290.0)
    found = derive_overheads(probes, 290.0)
    assert found.op_s == pytest.approx(270e-9)
    assert found.first_s == pytest.approx(600e-9)
    assert (found.label_s, found.name_s) == pytest.approx((1e-9, 70e-9))
    assert found.dead_s == pytest.approx(1440e-9 / 48)
    assert (found.dispatch_s, found.queue_s) == pytest.approx((200e-9, 100e-9))
    assert found.after_s[-1] == pytest.approx((200e-6, 500e-9))
    slower = derive_overheads(probes, slow * 290.0)
    assert (slower.op_s, slower.first_s, slower.dead_s) == pytest.approx((810e-9, 600e-9, 90e-9))
    own = ("op_s", "first_s", "dead_s", "label_s", "name_s")
    assert [getattr(slower, name) for name in own] == pytest.approx([getattr(found.slower(slow), name) for name in own])


def test_a_new_node_costs_more_in_a_large_step_and_on_several_threads() -> None:
    probes = {name: steps for name, steps in QUIET.items() if "new" not in name}
    for kind, times in (("one thread", (100, 300)), ("two threads", (500, 700))):
        for count, first in zip((99, 299), times, strict=True):
            runs = fresh(300, first, code=first // 10, count=count)
            probes[f"new on {kind}, {count}"] = [Step(runs, 300.0)]
        probes[f"new on {kind}, {count}, long names"] = [Step(named(runs, name=70), 300.0)]

    def price(nodes: int, threads: int) -> list[int]:
        found = derive_overheads(probes, 300.0, nodes, threads)
        return [round(time * 1e9) for time in (found.first_s, found.code_s, found.name_s, found.op_s)]

    assert price(10, 1) == price(100, 1) == [100, 10, 70, 300]
    assert price(150, 1) == [150, 15, 70, 300]
    assert price(300, 1) == price(5000, 1) == price(5000, -1) == [300, 30, 70, 300]  # -1 is the caller's thread
    assert price(200, 2) == price(200, 4) == [600, 60, 70, 300]


def test_what_a_new_node_costs_beside_expensive_ops_does_not_count() -> None:
    def with_pairs(runs: list[Run]) -> list[Run]:
        """Put two products at once before every fourth node, which starts late after them."""
        found, late = [], 0
        for i, run in enumerate(runs):
            if i % 4 == 3:
                start = runs[i - 1].end + late
                found += [Run(f"pair_{i}_{k}", start + 2000 + 100 * k, start + 9000) for k in range(2)]
                late += 10_000
            found.append(Run(run.name, run.start + late, run.end + late))
        return found

    of_pairs = {
        name: [Step(with_pairs(step.runs), step.pace) for step in steps]
        for name, steps in new(300, 600, pace=300.0).items()
        if "long names" not in name
    }
    assert all("pair_3_1" in [run.name for run in step.runs] for steps in of_pairs.values() for step in steps)
    assert derive_overheads({**QUIET, **of_pairs}, 300.0).first_s == pytest.approx(600e-9)


def test_of_each_probe_the_steps_near_the_pace_count() -> None:
    slow, quick = looped(900, 0), looped(300, 0)
    probes = dict(QUIET)
    probes["small"] = [*[Step(slow, 550.0)] * 20, *[Step(quick, 300.0)] * 6]
    probes["small, long names"] = [Step(named(quick, byte=0, name=0), 300.0)]
    assert derive_overheads(probes, 300.0).op_s == pytest.approx(300e-9)
    assert derive_overheads(probes, 550.0).op_s == pytest.approx(900e-9)
    probes["small"] = [*[Step(slow, 550.0)] * 20, *[Step(quick, 300.0)] * 2]
    assert derive_overheads(probes, 300.0).op_s == pytest.approx(900e-9 * 300 / 550)  # two are too few to tell


def test_what_takes_many_times_the_median_is_left_out() -> None:
    disturbed = looped(300, 150)
    late = [Run(run.name, run.start + 10**6, run.end + 10**6) for run in disturbed[-5:]]
    probes = {
        "small": [[*disturbed[:-5], *late]],
        "shared": [two_loops(300, 80, 10)],  # too few gaps to tell anything
        "alive": [row("switch", 13, 100, 500)],
        "few dead": [row("switch", 13, 100, 500)],
        "dead": [row("switch", 13, 100, 500)],
        "wide": [wide(700, 200, 100)],
        "after 64": [row("product", 24, 6000, 700)],
        "beside 96": [beside(15_000, 25_000)],
    }
    found = derive_overheads(steps(probes))
    assert found.op_s == pytest.approx(300e-9)
    assert (found.shared_s, found.dead_s) == (0.0, 0.0)


def test_waking_a_thread_takes_longer_after_long_idleness() -> None:
    def woken(large: int, latency: int) -> list[Run]:
        runs, now = [Run("join_1", 0, 5000)], 5000
        for i in range(8):
            first = Run(f"one{i}", now + latency // 2, now + latency // 2 + large)
            other = Run(f"other{i}", now + latency, now + latency + 6000)
            now = first.end + 5300
            runs += [first, other, Run(f"join{i}", now - 5000, now)]
        return sorted(runs, key=lambda run: run.start)

    woken_steps = {"beside 256": woken(200_000, 20_000), "beside 512": woken(900_000, 40_000)}
    probes = {**QUIET, "small": [Step(looped(300, 150))]}
    probes |= {name: [Step(runs)] * 10 for name, runs in woken_steps.items()}
    found = derive_overheads(probes)
    assert found.waking(0.0)[0] == pytest.approx(20e-6)
    assert found.waking(1.0)[0] == pytest.approx(40e-6)
    assert found.waking(0.0)[1] < found.waking(1.0)[1]


def test_hand_offs_of_every_step_count_as_they_would_be_at_the_pace() -> None:
    def round_trip(pace: int, idle: int, latency: int) -> Step:
        """Make rounds of two chains of two nodes: the other thread starts late, and is idle before for as long."""
        runs, now = [Run("join_first", 0, 1000)], 1000
        for i in range(3):
            other, end = now + latency, now + latency + 2000 + idle
            runs += [Run(f"one{i}", now + latency // 2, end - 500), Run(f"one{i}_0", end - 500, end)]
            runs += [Run(f"other{i}", other, other + 1000), Run(f"other{i}_0", other + 1000, other + 2000)]
            now = end
            runs.append(Run(f"join{i}", end, end))
        return Step(sorted(runs, key=lambda run: run.start), pace)

    steps = [round_trip(300, 40_000, 2000), round_trip(300, 50_000, 20_000), round_trip(1200, 170_000, 4000)]
    found = derive_overheads({**QUIET, "small": [Step(looped(300, 0), 300.0)], "beside": steps}, 300.0)
    assert (found.spin_s, found.spin_hand_off_s) == pytest.approx((42_500e-9, 1500e-9))  # 170 at 1200
    assert found.spin_spread == 0.0
    assert found.parked_s == (pytest.approx((50e-6, 20e-6, 10e-6 - 750e-9)),)
    steps = [round_trip(300, 40_000, 2000), *[round_trip(1200, 200_000, 40_000)] * 2]
    found = derive_overheads({**QUIET, "small": [Step(looped(300, 0), 300.0)], "beside": steps}, 300.0)
    assert found.parked_s == (pytest.approx((200e-6, 20e-6, 10e-6 - 1e-6)),)  # the square root of a quarter


def test_bookkeeping_after_a_kernel_is_interpolated() -> None:
    fixed = Overheads(after_s=((2e-6, 1e-6), (4e-6, 3e-6)))
    assert [fixed.after(s) for s in (0.0, 1e-6, 3e-6, 1.0)] == pytest.approx([0.0, 0.5e-6, 2e-6, 3e-6])
