"""Whether this computer has what TensorFlow and simplace need, without importing TensorFlow."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from simplace.errors import ProgramError
from simplace.kernels.installed import installed_version
from simplace.kernels.registry import KernelTable
from simplace.oracle import plugin
from viz.engine import system_dot
from viz.errors import LayoutError

State = Literal["ok", "note", "wrong"]
_NVIDIA = Path("/proc/driver/nvidia")
_BUILD_INFO = ("python", "platform", "build_info.py")
_SETTING = re.compile(r"\('(is_cuda_build|cuda_version|cudnn_version)', ('?)([^',)]*)\2\)")

# What the variables do that control devices, logging or threads.
VARIABLES: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": "numbers the GPUs that are seen, from GPU:0; an empty value or -1 hides all",
    "CUDA_DEVICE_ORDER": "orders the GPUs; nvidia-smi numbers them by PCI_BUS_ID",
    "NVIDIA_VISIBLE_DEVICES": "the GPUs that a container is given",
    "TF_CPP_MIN_LOG_LEVEL": "1 and above hide TensorFlow's placement log",
    "TF_CPP_VMODULE": "verbose logging for parts of TensorFlow's C++, such as placer=3",
    "TF_CPP_MAX_VLOG_LEVEL": "verbose logging for all of TensorFlow's C++",
    "TF_DUMP_GRAPH_PREFIX": "the folder that graphs are dumped into",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true: take GPU memory as it is needed, not all at once",
    "TF_GPU_ALLOCATOR": "how GPU memory is managed",
    "TF_GPU_THREAD_MODE": "which threads launch GPU kernels",
    "TF_GPU_THREAD_COUNT": "how many threads launch GPU kernels",
    "TF_NUM_INTEROP_THREADS": "size of the inter-op pool, unless the program sets it",
    "TF_NUM_INTRAOP_THREADS": "size of the intra-op pool, unless the program sets it",
    "OMP_NUM_THREADS": "threads of libraries such as oneDNN and NumPy's; TensorFlow's own settings don't govern them",
    "TF_ENABLE_ONEDNN_OPTS": "0 turns oneDNN's CPU kernels off",
    "TF_XLA_FLAGS": "flags of XLA; auto-clustering moves ops into compiled clusters",
    "XLA_FLAGS": "flags of XLA",
    "TF_CONFIG": "the cluster that this process is a task of, for tf.distribute",
    "TF_USE_LEGACY_KERAS": "1: tf.keras is Keras 2",
    "TF_ENABLED_DEVICE_TYPES": "the device types that TensorFlow may make",
    "TF_DISABLE_MKL": "1 turns oneDNN off",
    "KERAS_BACKEND": "anything but tensorflow makes Keras build no TensorFlow graph",
}


@dataclass(frozen=True, slots=True)
class Computer:
    """Record of what was found on a computer.

    `tensorflow` is "" where it is not installed; `cuda` is what its build requires ("" for a build without GPU kernels,
    None for unknown). `gpus` are the models of the NVIDIA GPUs that the driver knows, None without a driver.
    `cuda_libraries` are those of the driver and of CUDA that cannot be loaded. `compiler` is a command, or "" with
    `compiler_missing` giving the reason. `drawing` draws figures: "pygraphviz" or the path of a `dot`, or "" likewise.
    """

    system: str
    python: str
    tensorflow: str
    cuda: str | None
    tables: tuple[str, ...]
    gpus: tuple[str, ...] | None
    cuda_libraries: tuple[str, ...]
    compiler: str
    compiler_missing: str
    drawing: str
    drawing_missing: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fact:
    """Record of a fact about a computer: "ok", a "note" (works, with a caveat), or "wrong"; `remedy` is "" for "ok"."""

    topic: str
    state: State
    text: str
    remedy: str = ""

    @property
    def is_wrong(self) -> bool:
        """Return whether something does not work because of it."""
        return self.state == "wrong"


def examine_computer(environment: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return what works on this computer and what does not."""
    return judge_computer(inspect_computer(environment))


def inspect_computer(environment: Mapping[str, str]) -> Computer:
    """Return what this computer has."""
    compiler, compiler_missing = _find_compiler()
    drawing, drawing_missing = _what_draws()
    return Computer(
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        tensorflow=installed_version() or "",
        cuda=_cuda_build(),
        tables=KernelTable.versions(),
        gpus=_list_gpus(),
        cuda_libraries=tuple(name for name in ("libcuda.so.1",) if not _can_load(name)),
        compiler=compiler,
        compiler_missing=compiler_missing,
        drawing=drawing,
        drawing_missing=drawing_missing,
        variables={name: value for name, value in sorted(environment.items()) if name in VARIABLES},
    )


def judge_computer(computer: Computer) -> tuple[Fact, ...]:
    """Return what works on a computer and what does not, each fact after those it depends on."""
    facts = [_judge_tensorflow(computer), _judge_gpus(computer), _judge_emulation(computer), _judge_drawing(computer)]
    return (*facts, *(_judge_variable(name, value) for name, value in computer.variables.items()))


def _judge_tensorflow(computer: Computer) -> Fact:
    version = computer.tensorflow
    if not version:
        remedy = "pip install tensorflow; files can be placed without it, scripts can't be run"
        return Fact("TensorFlow", "wrong", f"not installed in this Python {computer.python}", remedy)
    text = f"{version} on Python {computer.python}, {computer.system}"
    series = version.rpartition(".")[0]
    if not any(table.startswith(f"{series}.") for table in computer.tables):
        known = ", ".join(computer.tables)
        return Fact(
            "TensorFlow", "note", text, f"simplace is tested with {known}; `simplace check` compares it with this one"
        )
    return Fact("TensorFlow", "ok", text)


def _judge_gpus(computer: Computer) -> Fact:
    if computer.gpus is None:
        text = "none: no NVIDIA driver is loaded, so TensorFlow sees the CPU alone"
        return Fact("GPUs", "note", text, "no GPU is needed to look at placements: --devices cpu:1,gpu:2 emulates them")
    if not computer.gpus:
        return Fact("GPUs", "wrong", "the NVIDIA driver lists no GPU", "see nvidia-smi; in a container, --gpus all")
    there = f"{len(computer.gpus)}: {', '.join(computer.gpus)}"
    if computer.cuda == "":
        text = f"{there}, but this build of TensorFlow has no GPU kernels"
        return Fact("GPUs", "wrong", text, "pip install 'tensorflow[and-cuda]' in place of tensorflow-cpu")
    if computer.cuda_libraries:
        text = f"{there}, but {', '.join(computer.cuda_libraries)} cannot be loaded"
        return Fact("GPUs", "wrong", text, "install the driver's user libraries; in a container, --gpus all")
    visible = computer.variables.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and not _first_number(visible):
        text = f"{there}, but CUDA_VISIBLE_DEVICES={visible!r} hides all of them"
        return Fact("GPUs", "wrong", text, "unset CUDA_VISIBLE_DEVICES, or list numbers from 0")
    wants = f"; TensorFlow requires {computer.cuda}" if computer.cuda else ""
    return Fact("GPUs", "ok", f"{there}{wants}")


def _judge_emulation(computer: Computer) -> Fact:
    if computer.compiler:
        return Fact("emulated GPUs", "ok", f"built on first use by {computer.compiler}")
    return Fact("emulated GPUs", "wrong", "no C compiler", computer.compiler_missing)


def _judge_drawing(computer: Computer) -> Fact:
    if computer.drawing == "pygraphviz":
        return Fact("figures", "ok", "drawn by the Graphviz inside pygraphviz's wheel")
    if computer.drawing:
        text = f"drawn by {computer.drawing}; layouts may differ from pygraphviz's, which are the same everywhere"
        return Fact("figures", "note", text, "pip install pygraphviz, without GRAPHVIZ_DOT in the environment")
    return Fact("figures", "wrong", "no Graphviz", computer.drawing_missing)


def _judge_variable(name: str, value: str) -> Fact:
    meaning = VARIABLES[name]
    hides = name == "TF_CPP_MIN_LOG_LEVEL" and value.strip() not in ("", "0")
    foreign = name == "KERAS_BACKEND" and value not in ("", "tensorflow")
    shown = value if len(value) <= 80 else value[:77] + "..."
    if hides or foreign:
        return Fact(name, "note", f"{shown!r}: {meaning}", f"unset {name}")
    return Fact(name, "ok", f"{shown!r}: {meaning}")


def _first_number(visible: str) -> bool:
    first = visible.split(",")[0].strip()
    return first.isdecimal() or first.startswith(("GPU-", "MIG-"))


def _list_gpus() -> tuple[str, ...] | None:
    if not _NVIDIA.is_dir():
        return None
    models = []
    for information in sorted(_NVIDIA.glob("gpus/*/information")):
        found = re.search(r"^Model:\s*(.+)$", information.read_text(errors="replace"), flags=re.MULTILINE)
        models.append(found[1].strip() if found else "a GPU")
    return tuple(models)


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _cuda_build() -> str | None:
    """Return what the installed build requires, read from its build_info file."""
    spec = importlib.util.find_spec("tensorflow")
    file = Path(spec.origin).parent.joinpath(*_BUILD_INFO) if spec is not None and spec.origin else None
    if file is None or not file.is_file():
        return None
    settings = {name: value for name, _, value in _SETTING.findall(file.read_text(errors="replace"))}
    if settings.get("is_cuda_build") != "True":
        return ""
    return f"CUDA {settings.get('cuda_version', '?')} and cuDNN {settings.get('cudnn_version', '?')}"


def _find_compiler() -> tuple[str, str]:
    try:
        return " ".join(plugin.find_compiler()), ""
    except ProgramError as error:
        return "", str(error)


def _what_draws() -> tuple[str, str]:
    try:
        return system_dot() or "pygraphviz", ""
    except LayoutError as error:
        return "", str(error)
