"""What the user may set of a simulated step: threads and cores, costs, loop counts and branch outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict, get_args

from simplace.costs.chosen_model import find_cores
from simplace.costs.cost_model import CostModel
from simplace.errors import SimplaceError
from simplace.program.program import SessionRun

DEFAULT_BATCH = 32
GpuThreadMode = Literal["global", "gpu_private", "gpu_shared"]


@dataclass(frozen=True, slots=True)
class Threads:
    """Record of thread settings under TensorFlow's names.

    `inter_op` and `intra_op` 0 stand for the number of cores, `inter_op` -1 for the caller's thread. `cores` is how
    many threads of a process really run at once. `gpu_thread_mode` and `gpu_thread_count` are TF_GPU_THREAD_MODE and
    TF_GPU_THREAD_COUNT. `warm`: the moving average of each op's cost has settled, as after some hundred steps.
    `seed` picks the victims of stealing.

    Raises `SimplaceError` for what TensorFlow would not accept.
    """

    inter_op: int = 0
    intra_op: int = 0
    cores: int = 2
    gpu_thread_mode: GpuThreadMode = "global"
    gpu_thread_count: int = 2
    warm: bool = True
    steps: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.inter_op < -1:
            raise SimplaceError(
                f"inter_op must be -1 (the caller's thread alone), 0 (one per core) or positive; got {self.inter_op}"
            )
        if self.intra_op < 0:
            raise SimplaceError(f"intra_op must be 0 (one per core) or positive; got {self.intra_op}")
        for name, value in (("cores", self.cores), ("steps", self.steps), ("gpu_thread_count", self.gpu_thread_count)):
            if value < 1:
                raise SimplaceError(f"{name} must be positive; got {value}")
        if max(self.inter_op, self.intra_op, self.cores, self.gpu_thread_count) > 4096:
            raise SimplaceError("simplace simulates at most 4,096 threads and cores")
        if self.gpu_thread_mode not in get_args(GpuThreadMode):
            modes = ", ".join(sorted(get_args(GpuThreadMode)))
            raise SimplaceError(f"{self.gpu_thread_mode!r} is not a TF_GPU_THREAD_MODE; choose one of: {modes}")

    @property
    def inter_op_size(self) -> int:
        """Return the size of the inter-op pool."""
        return self.inter_op or self.cores

    @property
    def intra_op_size(self) -> int:
        """Return the size of the intra-op pool."""
        return self.intra_op or self.cores


@dataclass(frozen=True, slots=True)
class StepOptions(Threads):
    """Record of all that a simulated step depends on besides the placed graph.

    `costs` is "modelled" or "analytic" (for the hardware that `gpu` and `cpu` name), "flat", a cost file's name, or a
    `CostModel`. `cpu` is what `costs.chosen_cpu` takes, "" for the CPU that a cost file was measured on, else one of
    two cores; `cores` 0 stands for its cores. `batch` stands for unknown first dimensions, `trips` and `branches` for
    loops and conditions (see `control_flow`). `limits` maps full device names to bytes; without it a GPU has what
    TensorFlow takes of the hardware's memory, all but a reserve or `gpu_memory_fraction`
    (per_process_gpu_memory_fraction) of it; None is that of the program's sessions where they are known (see
    `analysis.session_memory`), else all but the reserve. `run` prunes a session's graph to a run. `optimizes` takes out
    of the step what TensorFlow takes out before the first one, with Grappler or without: what depends on nothing but
    constants, and what is computed twice. `unfolded` is the first dimension of tensors that are computed in each step
    all the same (0: none), as those that grow with the batch are when it is large. `grappler` has TensorFlow's Grappler
    optimize the placed graph before.
    """

    executor: str = "tensorflow"
    costs: CostModel | str = "modelled"
    gpu: str = "a100"
    cpu: str = ""
    cores: int = 0
    gpu_memory_fraction: float | None = None
    batch: int = DEFAULT_BATCH
    trips: Mapping[str, int] = field(default_factory=dict)
    branches: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    run: SessionRun | None = None
    optimizes: bool = True
    unfolded: int = 0
    grappler: bool = False

    def __post_init__(self) -> None:
        if not self.cores:
            object.__setattr__(self, "cores", find_cores(self.costs, self.cpu))
        Threads.__post_init__(self)

    @property
    def memory_fraction(self) -> float:
        """Return the fraction of a GPU's memory that holds, 0 for all but TensorFlow's reserve."""
        return self.gpu_memory_fraction or 0.0


class StepKeywords(TypedDict, total=False):
    """Type the fields of `StepOptions` for functions that take them as keyword arguments."""

    inter_op: int
    intra_op: int
    cores: int
    gpu_thread_mode: GpuThreadMode
    gpu_thread_count: int
    warm: bool
    steps: int
    seed: int
    executor: str
    costs: CostModel | str
    gpu: str
    cpu: str
    gpu_memory_fraction: float | None
    batch: int
    trips: Mapping[str, int]
    branches: Mapping[str, int]
    limits: Mapping[str, int]
    run: SessionRun | None
    optimizes: bool
    unfolded: int
    grappler: bool
