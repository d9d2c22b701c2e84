"""The emulated machine, as TensorFlow sees it: its GPUs by the plugin, its CPUs by configuration.

TensorFlow's pluggable devices can't be split or hidden by configuration, so those settings of a program are turned
into the number of GPUs that the plugin shows (tensorflow/core/common_runtime/pluggable_device/).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from simplace.devices.device_name import DeviceName
from simplace.kernels.table_file import version_key
from simplace.machine.machine import GIB, Machine
from simplace.oracle.child.boundary import wrap_foreign
from simplace.oracle.child.patches import find_original, patch_method
from simplace.oracle.child.shared_memory import share_emulated_memory
from simplace.oracle.child.tf_private import context, load_library
from simplace.oracle.child.users_environment import is_as_given

_REFUSAL = "an emulated GPU computes nothing"  # as plugin.c has it
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_COUNT, _MEMORY = "SIMPLACE_GPU_COUNT", "SIMPLACE_GPU_MEMORY"
# Pluggable devices have options of their own since TensorFlow 2.18, and name the type of what they list since 2.19.
_VERSION = version_key(tf.version.VERSION)
_OPTIONS_FIELD = "pluggable_device_options" if _VERSION >= (2, 18) else "gpu_options"
_LISTED = "GPU:{}" if _VERSION >= (2, 19) else "{}"
_COMPUTE_OPTIONS = f"_compute_{_OPTIONS_FIELD}"

_for_new_contexts: list[Callable[[Any], None]] = []


class LogicalGpu(NamedTuple):
    """Record of a logical GPU: its memory in bytes, and the number of the physical GPU behind it."""

    memory: int
    physical: int


def computes_nothing(error: Any) -> bool:
    """Return whether an error is an emulated GPU's refusal to start a kernel, or comes of it."""
    return error is not None and _REFUSAL in str(error)


def prepare_devices(machine: Machine, plugin: str) -> None:
    """Load the plugin and configure devices and logging, before TensorFlow's context exists."""
    os.putenv(_COUNT, str(machine.gpus))  # for the plugin, where the program does not see it
    os.putenv(_MEMORY, str(machine.gpu_memory))
    if plugin:
        load_library.load_pluggable_device_library(plugin)
        share_emulated_memory()
        _split_gpus_by_count(machine)
    _configure_when_listed(machine)
    _keep_logging()


def fix_soft_placement(wanted: bool | None) -> None:
    """Turn soft placement on or off for functions whatever the program sets; None leaves it to the program."""
    if wanted is None:
        return
    set_soft_placement = find_original(context.Context, "soft_device_placement").fset
    for_each_context(lambda each: set_soft_placement(each, wanted))
    patch_method(context.Context, "soft_device_placement", _ignore_setting)


def for_each_context(act: Callable[[Any], None]) -> None:
    """Call `act` with TensorFlow's context now, and with each one that a program makes to take its place."""
    act(context.context())
    if not _for_new_contexts:
        patch_method(context.Context, "__init__", _act_on_new)
    _for_new_contexts.append(act)


def _act_on_new(make: Any) -> Any:
    def make_and_act(made: Any, *args: Any, **kwargs: Any) -> None:
        make(made, *args, **kwargs)
        for act in _for_new_contexts:
            act(made)

    return make_and_act


def _ignore_setting(setting: Any) -> property:
    """Return a property without the effect of setting it."""
    return property(setting.fget, lambda _, value: None)


def session_config(config: Any, machine: Machine, plugin: str) -> tuple[Any, list[LogicalGpu]]:
    """Copy a session's configuration with logging on and with the machine's devices; return its GPUs, too."""
    copy = tf.compat.v1.ConfigProto()
    copy.CopyFrom(config)
    copy.log_device_placement = True
    if "CPU" not in copy.device_count and machine.cpus > 1:
        copy.device_count["CPU"] = machine.cpus
    if not plugin:
        return copy, []
    options = copy.gpu_options
    chosen = _parse_numbers(options.visible_device_list)
    seen = _visible_gpus(machine)
    physical = seen if chosen is None else [seen[number] for number in chosen if number < len(seen)]
    splits = [[mebibytes << 20 for mebibytes in each.memory_limit_mb] for each in options.experimental.virtual_devices]
    gpus = _split_gpus(splits or [list(machine.split_of(gpu)) for gpu in physical], physical, machine)
    if "GPU" in copy.device_count:
        gpus = gpus[: copy.device_count["GPU"]]
    _show_gpus(len(gpus))
    copy.device_count["GPU"] = len(gpus)
    _list_gpus(getattr(copy, _OPTIONS_FIELD), len(gpus))
    return copy, gpus


def describe_context(machine: Machine) -> list[dict[str, Any]]:
    """Describe the devices of TensorFlow's context, which is made if need be."""
    wrap_foreign(context.ensure_initialized)()
    names = list(context.context().devices())
    own = names[0].partition("/device:")[0] + "/"
    gpus = _list_context_gpus(context.context(), machine)
    return [*describe_devices([name for name in names if name.startswith(own)], gpus, machine),
            *describe_remote([name for name in names if not name.startswith(own)], machine)]  # fmt: skip


def describe_remote(names: list[str], machine: Machine) -> list[dict[str, Any]]:
    """Describe devices of other tasks, whose GPUs are split as their servers' are."""
    return [each for name in names for each in _describe_remote_device(name, machine)]


def _describe_remote_device(name: str, machine: Machine) -> list[dict[str, Any]]:
    spec = DeviceName.parse(name)
    assert spec is not None, f"{name} is a full device name"
    own = machine.of_task(str(spec.job), spec.task or 0) or machine
    physical = _visible_gpus(own)
    return describe_devices([name], _split_gpus([list(own.split_of(gpu)) for gpu in physical], physical, own), own)


def describe_devices(names: list[str], gpus: list[LogicalGpu], machine: Machine) -> list[dict[str, Any]]:
    """Describe devices by full name, type, emulated hardware, limit and number; `gpus` are GPU:0, GPU:1 ..."""
    return [_describe_device(name, gpus, machine.gpu_memory) for name in names]


def _describe_device(name: str, gpus: list[LogicalGpu], whole: int) -> dict[str, Any]:
    kind, number = name.rsplit(":", 2)[-2:]
    if kind != "GPU":
        return {"name": name, "type": kind, "description": ""}
    own = gpus[int(number)] if int(number) < len(gpus) else LogicalGpu(whole, int(number))
    described = {"name": name, "type": kind, "description": f"emulated, {own.memory / GIB:g} GiB"}
    limit = {} if own.memory == whole else {"limit": own.memory}
    return {**described, **limit, **({} if own.physical == int(number) else {"gpu": own.physical})}


def _configure_when_listed(machine: Machine) -> None:
    """Configure the machine when TensorFlow first lists its devices: until then a program may hide some.

    That is what setting CUDA_VISIBLE_DEVICES does, from the top of a script.
    """

    def wrap(initialize: Any) -> Any:
        def initialize_configured(self: Any, reinitialize: bool = False) -> Any:
            if hasattr(self, "_simplace_listed") and not reinitialize:
                return
            self._simplace_listed = True
            visible = self._simplace_visible = _visible_gpus(machine)
            _show_gpus(len(visible))
            initialize(self, True)  # loading the plugin has listed them once
            _configure_devices(self, machine, visible)

        return initialize_configured

    patch_method(context.Context, "_initialize_physical_devices", wrap)


def _configure_devices(self: Any, machine: Machine, visible: list[int]) -> None:
    if machine.cpus > 1:
        cpu = self.list_physical_devices("CPU")[0]
        self.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * machine.cpus)
    gpus = dict(zip(visible, self.list_physical_devices("GPU"), strict=False))
    for number, gpu in gpus.items():
        if limits := machine.split_of(number):
            parts = [tf.config.LogicalDeviceConfiguration(memory_limit=limit >> 20) for limit in limits]
            self.set_logical_device_configuration(gpu, parts)


def _keep_logging() -> None:
    """Log placements, whatever the program's own `set_log_device_placement` sets."""
    set_logging = find_original(context.Context, "log_device_placement").fset
    for_each_context(lambda each: set_logging(each, True))
    patch_method(context.Context, "log_device_placement", _remember_setting)


def _remember_setting(_: Any) -> property:
    """Return a property that has what the program sets, and sets nothing in TensorFlow."""
    return property(lambda ctx: getattr(ctx, "_simplace_logs", False), _set_remembered)


def _set_remembered(ctx: Any, enable: Any) -> None:
    ctx._simplace_logs = bool(enable)


def _split_gpus_by_count(machine: Machine) -> None:
    """Turn the context's visible and logical GPUs into as many whole GPUs of the plugin."""

    def wrap(compute: Any) -> Any:
        def compute_counted(self: Any) -> Any:
            options = _compute_as_gpu(self, wrap_foreign(compute))
            gpus = _list_context_gpus(self, machine)
            _show_gpus(len(gpus))
            _list_gpus(options, len(gpus))
            return options

        return compute_counted

    patch_method(context.Context, _COMPUTE_OPTIONS, wrap)


def _compute_as_gpu(self: Any, compute: Callable[[Any], Any]) -> Any:
    """Compute the options of pluggable devices as those of GPUs, of which split ones may grow differently.

    What TensorFlow demands of GPUs it has checked before (Context._compute_gpu_options).
    """
    if _OPTIONS_FIELD == "gpu_options":
        return compute(self)
    growth = self._memory_growth_map
    self._memory_growth_map = dict.fromkeys(growth)
    try:
        return compute(self)
    finally:
        self._memory_growth_map = growth


def _list_context_gpus(self: Any, machine: Machine) -> list[LogicalGpu]:
    listed = self.list_physical_devices("GPU")
    numbers = dict(zip(listed, self._simplace_visible, strict=False))
    visible = [gpu for gpu in listed if gpu in self._visible_device_list]
    splits = [[part.memory_limit << 20 for part in self._virtual_device_map.get(gpu) or ()] for gpu in visible]
    return _split_gpus(splits, [numbers[gpu] for gpu in visible], machine)


def _split_gpus(splits: list[list[int]], physical: list[int], machine: Machine) -> list[LogicalGpu]:
    """List the logical GPUs of physical ones; a GPU without a split is whole."""
    given = splits[: len(physical)] + [[]] * (len(physical) - len(splits))
    return [
        LogicalGpu(limit, number)
        for number, split in zip(physical, given, strict=True)
        for limit in split or [machine.gpu_memory]
    ]


def _list_gpus(options: Any, count: int) -> None:
    """Set the options of pluggable devices: all of them visible, none split."""
    options.visible_device_list = ",".join(map(_LISTED.format, range(count)))
    del options.experimental.virtual_devices[:]


def _show_gpus(gpus: int) -> None:
    os.environ[_COUNT] = str(gpus)


def _visible_gpus(machine: Machine) -> list[int]:
    """List the physical GPUs that TensorFlow is to see; what the program has set itself replaces the machine's list.

    As with CUDA_VISIBLE_DEVICES, the others are not even among TensorFlow's physical devices.
    """
    if is_as_given(_VISIBLE):
        return list(machine.visible_gpus)
    setting = os.environ.get(_VISIBLE)
    if setting is None:
        return list(range(machine.gpus))
    chosen = []
    for number in setting.split(","):  # CUDA stops at the first entry that names no device
        if not number.strip().isdigit() or int(number) >= machine.gpus:
            break
        chosen.append(int(number))
    return chosen


def _parse_numbers(text: str) -> list[int] | None:
    return [int(part) for part in text.split(",")] if text else None
