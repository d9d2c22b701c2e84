"""The roofline cost model: arithmetic and memory traffic of a kernel overlap, the slower one counts.

CPU kernels are estimated on one thread, at the rates that the CPU reaches at their size where it was measured; threads
that share a kernel never draw more than the bandwidth of all cores, but kernels that run at once do not take it from
each other. How many threads may share them follows Eigen's cost model
(unsupported/Eigen/CXX11/src/Tensor/TensorCostModel.h): one thread up to 210,000 cycles, one more every 100,000.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simplace.costs.collectives import count_hops, count_sent_bytes, count_whole_bytes
from simplace.costs.cost_model import (
    COMPILED,
    COPY_ERROR,
    GUESSED_ERROR,
    CollectiveCall,
    CostModel,
    Fixed,
    KernelCost,
    OpCall,
    Overheads,
    PeerWay,
    Reliability,
)
from simplace.costs.gpu_memory import compute_usable_bytes
from simplace.costs.hardware import CPU_2_CORES, Hardware, Processor
from simplace.costs.hardware import find_hardware as find_machine
from simplace.costs.op_work import Work, count_work, is_free, takes_over

_STARTUP_CYCLES = 100_000
_CYCLES_A_THREAD = 100_000
_MOST_SHARDS = 1024

# Measured on TensorFlow 2.21 with 2 cores: 0.3 to 1 us of bookkeeping an op, 12 us (8 to 17) until a second worker
# starts on what was dispatched, 0.1 to 0.2 ms to fork and join a kernel of a millisecond, 0.1 to 0.2 ms between steps.
# The host polls for finished copies every 10 us (common_runtime/device/device_event_mgr.h), so 5 us on average.
MEASURED_OVERHEADS = Overheads(op_s=0.5e-6, dead_s=0.5e-6, hand_off_s=12e-6, fork_s=0.1e-3, poll_s=5e-6, step_s=0.15e-3)


@dataclass(frozen=True, slots=True)
class Roofline:
    """Cost model for a machine of the library; `memory_fraction` is per_process_gpu_memory_fraction, 0 for unset.

    `allows_tf32`: tensor cores multiply float32, as TensorFlow allows unless told otherwise.
    """

    hardware: Hardware
    overheads: Overheads = MEASURED_OVERHEADS
    memory_fraction: float = 0.0
    allows_tf32: bool = True

    @property
    def name(self) -> str:
        """Name the model."""
        parts = (self.hardware.cpu.name, self.hardware.gpu.name, self.hardware.host_link.name)
        return f"analytic: roofline of {', '.join(parts)}"

    @property
    def clock(self) -> float:
        """Return the clock of a CPU core."""
        return self.hardware.cpu.clock

    def kernel(self, call: OpCall) -> KernelCost:
        """Estimate one execution."""
        if is_free(call.op) or takes_over(call.op):
            return KernelCost(0.0)
        found = count_work(call)
        dtype = call.outputs[0].dtype if call.outputs else "float32"
        dtype = dtype.removesuffix("_ref")
        core = self.hardware.cpu
        if call.device_type != "GPU":
            return _time_on_core(core, found, dtype, sum(tensor.size for tensor in call.outputs))
        processor = self.hardware.gpu
        on_matrix_units = found.on_matrix_units and (dtype != "float32" or self.allows_tf32)
        arithmetic = found.flops / processor.flops(dtype, on_matrix_units)
        seconds = processor.least_s + max(arithmetic, found.bytes / processor.bandwidth)
        on_core = max(found.flops / core.flops("float32", False), found.bytes / core.bandwidth)
        return KernelCost(self.launch_seconds(call), seconds, count_shards(on_core * core.clock), found.is_guess)

    def launch_seconds(self, call: OpCall) -> float:
        """Return how long the host takes to launch a kernel on a GPU."""
        gpu = self.hardware.gpu
        return gpu.next_launch_s if call.attrs.get(COMPILED) else gpu.launch_s

    def copy(self, size: int, source: str, target: str) -> float:
        """Estimate a copy; within host memory the buffer is shared, within a card each byte is read and written."""
        if target == "remote":
            return self.hardware.network.seconds(size)
        if source == target == "CPU":
            return 0.0
        if target == "same GPU":
            return self.hardware.gpu.least_s + 2 * size / self.hardware.gpu.bandwidth
        link = self.hardware.peer_link if source == target else self.hardware.host_link
        return link.seconds(size)

    @property
    def peer_link(self) -> str:
        """Return the name of the links that join GPUs alone, "" where there are none."""
        return self.hardware.peer_link.name if self.peer_way == "nvlink" else ""

    @property
    def peer_way(self) -> PeerWay:
        """Return how a copy from a GPU to another goes."""
        return "pcie" if self.hardware.peer_link == self.hardware.host_link else "nvlink"

    def assume_reliability(self, what: Fixed) -> Reliability:
        """Return that copies and fixed times are guessed, and how far off they are taken to be."""
        return Reliability("guessed", COPY_ERROR if what == "copy" else GUESSED_ERROR)

    def collective(self, call: CollectiveCall) -> KernelCost:
        """Estimate a member of a collective: a ring, each of whose parts takes a link's latency and its bytes' time.

        In host memory the ring runs at the bandwidth of a core, and within a card all members copy at once at that of
        its memory; launching one on a GPU takes as long as a kernel.
        """
        hardware, is_gpu = self.hardware, call.device_type == "GPU"
        host_s = hardware.gpu.launch_s if is_gpu else 0.0
        hops, size = count_hops(call.op, call.participants), count_sent_bytes(call.op, call.size, call.participants)
        if call.is_on_card:
            return KernelCost(host_s, sum_copies_on_card(call, self))
        if call.is_remote:
            latency, bandwidth = hardware.network.latency_s, hardware.network.bandwidth
        elif is_gpu:
            latency, bandwidth = hardware.peer_link.latency_s, hardware.peer_link.bandwidth
        else:
            latency, bandwidth = hardware.cpu.least_s, hardware.cpu.bandwidth
        return KernelCost(host_s, hops * latency + size / bandwidth)

    def memory(self, device_type: str) -> int:
        """Return what TensorFlow takes of the GPU's memory; the host's is not limited."""
        gpu = self.hardware.gpu
        return compute_usable_bytes(gpu.memory, gpu.capability, self.memory_fraction) if device_type == "GPU" else 0


def sum_copies_on_card(call: CollectiveCall, model: CostModel) -> float:
    """Return the seconds of a collective among logical GPUs of a card: copies within its memory, one hop after another.

    In a hop all members copy at once, in a ring together as much as each puts in; they share the memory's bandwidth.
    """
    whole = count_whole_bytes(call.op, call.size, call.participants)
    hops = call.participants - 1 if call.op == "alltoall" else count_hops(call.op, call.participants)
    return hops * model.copy(whole, "GPU", "same GPU")


def _time_on_core(core: Processor, work: Work, dtype: str, made: int) -> KernelCost:
    """Return the cost of a kernel on a core of a CPU, which makes outputs of so many bytes.

    Threads that share it draw on the memory of all cores. Products of a data type that was not measured are guesses.
    """
    written = min(made, work.bytes)
    moved_s = core.move_s(work.bytes - written, written)
    seconds = core.least_s + max(core.compute_s(work.flops, dtype, work.on_matrix_units), moved_s)
    has_rate = not work.on_matrix_units or dtype in core.products
    is_calibrated = core.is_calibrated and has_rate and not work.is_guess
    whole = min(seconds, core.share_s(work.bytes - written, written))
    return KernelCost(
        seconds, shards=count_shards(seconds * core.clock), is_guess=work.is_guess,
        source="calibrated" if is_calibrated else "guessed", least_part_s=whole,
    )  # fmt: skip


def count_shards(cycles: float) -> int:
    """Return how many threads Eigen's cost model gives a kernel of that many cycles.

    >>> count_shards(150_000), count_shards(210_000), count_shards(1_000_000)
    (1, 2, 9)
    """
    return max(1, min(_MOST_SHARDS, int((cycles - _STARTUP_CYCLES) / _CYCLES_A_THREAD + 0.9)))


def make_roofline(machine: str = "a100", memory_fraction: float = 0.0, cpu: Processor = CPU_2_CORES) -> Roofline:
    """Return the roofline of a machine of the library, by the name of its GPUs; `cpu` is a core of its CPU."""
    return Roofline(replace(find_machine(machine), cpu=cpu), memory_fraction=memory_fraction)
