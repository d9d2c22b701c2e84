"""TensorFlow made to believe in a machine: its GPUs by the plugin, its CPUs by configuration.

TensorFlow's pluggable devices can't be split or hidden by configuration, so those settings of a program are turned
into the number of GPUs that the plugin shows (tensorflow/core/common_runtime/pluggable_device/).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from simplace.oracle.machine import GIB, Machine
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import load_library

HIDDEN = "NoDevFiles"  # what CUDA_VISIBLE_DEVICES holds as long as the program has not set it
_COUNT, _MEMORY = "SIMPLACE_GPU_COUNT", "SIMPLACE_GPU_MEMORY"


class Gpus:
    """Switch the emulated GPUs' refusal of memory; without a plugin there is nothing to switch."""

    def __init__(self, plugin: str) -> None:
        self.emulated = bool(plugin)
        self._lock = threading.Lock()
        self._depth = 0
        if plugin:
            library = ctypes.CDLL(plugin)
            self._refuse = ctypes.c_int.in_dll(library, "simplace_refuse")
            self._refused = ctypes.c_int.in_dll(library, "simplace_refused")

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse all memory of the emulated GPUs for a while; may be nested and shared by threads."""
        if not self.emulated:
            yield
            return
        with self._lock:
            self._depth += 1
            self._refuse.value = 1
            self._refused.value = 0
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                self._refuse.value = int(self._depth > 0)

    @property
    def have_refused(self) -> bool:
        """Say whether memory was asked for, in vain, since `refusing` was last entered."""
        return self.emulated and bool(self._refused.value)


def prepare(machine: Machine, plugin: str) -> Gpus:
    """Load the plugin and configure devices and logging, before TensorFlow's context exists."""
    os.environ[_COUNT] = str(machine.gpus)
    os.environ[_MEMORY] = str(machine.gpu_memory)
    if plugin:
        load_library.load_pluggable_device_library(plugin)
        _show_gpus_by_visible_devices(machine)
        _split_gpus_by_count()
    tf.debugging.set_log_device_placement(True)
    _keep_logging()
    _configure(machine)
    return Gpus(plugin)


def session_config(config: Any, machine: Machine, plugin: str) -> Any:
    """Copy a session's configuration with logging on and with the machine's devices."""
    copy = config_pb2.ConfigProto()
    copy.CopyFrom(config)
    copy.log_device_placement = True
    if "CPU" not in copy.device_count and machine.cpus > 1:
        copy.device_count["CPU"] = machine.cpus
    if not plugin:
        return copy
    options = copy.gpu_options
    chosen = _numbers(options.visible_device_list)
    physical = _visible_gpus(machine) if chosen is None else chosen
    splits = [list(each.memory_limit_mb) for each in options.experimental.virtual_devices]
    if not splits:
        splits = [list(machine.split_of(gpu)) for gpu in physical]
    wanted = sum(max(1, len(split)) for split in splits[: len(physical)]) + max(0, len(physical) - len(splits))
    if "GPU" in copy.device_count:
        wanted = min(wanted, copy.device_count["GPU"])
    _show(wanted)
    copy.device_count["GPU"] = wanted
    copy.pluggable_device_options.visible_device_list = ",".join(f"GPU:{number}" for number in range(wanted))
    return copy


def described(names: list[str], machine: Machine) -> list[dict[str, str]]:
    """Describe devices by full name, type and the hardware that is behind them."""
    gpu = f"emulated, {machine.gpu_memory / GIB:g} GiB"
    types = {name: name.rsplit(":", 2)[-2] for name in names}
    return [{"name": name, "type": kind, "description": gpu if kind == "GPU" else ""} for name, kind in types.items()]


def _configure(machine: Machine) -> None:
    if machine.cpus > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * machine.cpus)
    gpus = tf.config.list_physical_devices("GPU") if machine.gpus else []
    for number, gpu in enumerate(gpus):
        if limits := machine.split_of(number):
            parts = [tf.config.LogicalDeviceConfiguration(memory_limit=limit >> 20) for limit in limits]
            tf.config.set_logical_device_configuration(gpu, parts)
    if machine.visible is not None:
        tf.config.set_visible_devices([gpus[number] for number in machine.visible], "GPU")


def _keep_logging() -> None:
    """Make the program's own `set_log_device_placement` harmless."""
    setting = context.Context.log_device_placement
    context.Context.log_device_placement = setting.setter(lambda self, enable: None)


def _show_gpus_by_visible_devices(machine: Machine) -> None:
    """Let a program that sets CUDA_VISIBLE_DEVICES hide GPUs until TensorFlow first lists them."""
    initialize = context.Context._initialize_physical_devices

    def initialize_visible(self: Any, reinitialize: bool = False) -> Any:
        if self._physical_devices is None or reinitialize:
            _show(len(_visible_gpus(machine)))
        return initialize(self, reinitialize)

    context.Context._initialize_physical_devices = initialize_visible


def _split_gpus_by_count() -> None:
    """Turn the context's visible and logical GPUs into as many whole GPUs of the plugin."""
    compute = context.Context._compute_device_options

    def compute_counted(self: Any, device_type: str) -> Any:
        options = compute(self, device_type)
        if device_type != "PluggableDevice":
            return options
        visible = [gpu for gpu in self.list_physical_devices("GPU") if gpu in self._visible_device_list]
        wanted = sum(len(self._virtual_device_map.get(gpu) or (None,)) for gpu in visible)
        _show(wanted)
        options.visible_device_list = ",".join(f"GPU:{number}" for number in range(wanted))
        return options

    context.Context._compute_device_options = compute_counted


def _show(gpus: int) -> None:
    os.environ[_COUNT] = str(gpus)


def _visible_gpus(machine: Machine) -> list[int]:
    setting = os.environ.get("CUDA_VISIBLE_DEVICES", HIDDEN)
    if setting == HIDDEN:
        return list(range(machine.gpus))
    chosen = []
    for number in setting.split(","):  # CUDA stops at the first entry that names no device
        if not number.strip().isdigit() or int(number) >= machine.gpus:
            break
        chosen.append(int(number))
    return chosen


def _numbers(text: str) -> list[int] | None:
    return [int(part) for part in text.split(",")] if text else None
