"""Read the machine that the user asks for: a device list, a TOML file, what this computer has, what is visible."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from simplace.devices import parse_counts
from simplace.errors import DeviceSpecError, choices
from simplace.oracle.machine import GIB, Machine

_UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1 << 10, "mib": 1 << 20, "gib": GIB}
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")


def machine(spec: str | None, visible: str | None, environment: Mapping[str, str]) -> tuple[Machine, str]:
    """Return the machine and one sentence that says where it comes from.

    `spec` is a device list (`cpu:1,gpu:2`) or the path of a TOML file, None for what TensorFlow would see here.
    `visible` is the user's list of visible physical GPUs; without one, CUDA_VISIBLE_DEVICES of `environment` holds.
    """
    found, where = _from_spec(spec)
    chosen, why = visible, "--visible"
    if chosen is None and "CUDA_VISIBLE_DEVICES" in environment:
        chosen, why = environment["CUDA_VISIBLE_DEVICES"], "CUDA_VISIBLE_DEVICES"
    if chosen is None:
        return found, where
    numbers = parse_visible(chosen, found.gpus, strict=visible is not None)
    logical = [number for number in numbers for _ in found.split_of(number) or (0,)]
    shown = ", ".join(f"GPU:{i} is physical GPU {number}" for i, number in enumerate(logical)) or "no GPU is visible"
    return replace(found, visible=numbers), f"{where}; {why}={chosen!r}: {shown}"


def parse_visible(text: str, gpus: int, *, strict: bool) -> tuple[int, ...]:
    """Read a list of physical GPU numbers in the order in which TensorFlow numbers them from GPU:0.

    As for CUDA, an entry that names no GPU ends the list; `strict` makes it an error instead.

    >>> parse_visible("2,0", 4, strict=True), parse_visible("0,9,1", 4, strict=False), parse_visible("", 4, strict=True)
    ((2, 0), (0,), ())
    """
    numbers: list[int] = []
    for part in (piece.strip() for piece in text.split(",") if text.strip()):
        known = part.isdecimal() and int(part) < gpus and int(part) not in numbers
        if not known and strict:
            raise DeviceSpecError(
                f"{part!r} in the visible GPUs {text!r} is not the number of a GPU, or comes twice; "
                + (f"the numbers are 0 to {gpus - 1}" if gpus else "this machine has no GPU")
            )
        if not known:
            break
        numbers.append(int(part))
    return tuple(numbers)


def _from_spec(spec: str | None) -> tuple[Machine, str]:
    if spec is None:
        return _here()
    if spec.endswith(".toml") or "/" in spec:
        made, described = read(Path(spec))
        return made, f"devices as {spec} describes them: {described}"
    counts = dict(parse_counts(spec))
    return Machine(counts["CPU"], counts.get("GPU", 0)), f"devices as asked for: {spec}"


def _here() -> tuple[Machine, str]:
    count = len(list(_NVIDIA_GPUS.iterdir())) if _NVIDIA_GPUS.is_dir() else 0
    if count:
        return Machine(1, count), f"devices as in this computer: cpu:1,gpu:{count}"
    return Machine(1, 1), "devices cpu:1,gpu:1, since this computer has no GPU; --devices chooses others"


def read(path: Path) -> tuple[Machine, str]:
    """Read a machine from a TOML file, and describe it in a few words; raise `DeviceSpecError` for what is unknown.

    The file holds `cpus = 1`, `visible = [0, 1]`, and a table `[[gpu]]` per kind of GPU with `count`, `memory`
    ("16 GiB") and `virtual`, the memory of each logical GPU that a physical one is split into. `name` is free text.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DeviceSpecError(f"{path}: cannot read the device file: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DeviceSpecError(f"{path}: not a TOML file: {error}") from None
    _only(path, "the file", values, {"name", "cpus", "gpu", "visible"})
    gpus = [gpu for entry in _tables(path, values.get("gpu", [])) for gpu in _gpus(path, entry)]
    memories = {memory for memory, _ in gpus}
    if len(memories) > 1:
        raise DeviceSpecError(f"{path}: all GPUs need the same memory, since TensorFlow's emulation has one size")
    made = Machine(
        _number(path, "cpus", values.get("cpus", 1), least=1),
        len(gpus),
        memories.pop() if memories else Machine().gpu_memory,
        tuple(split for _, split in gpus),
    )
    described = _described(values)
    if "visible" not in values:
        return made, described
    text = ",".join(str(number) for number in _list(path, "visible", values["visible"]))
    try:
        return replace(made, visible=parse_visible(text, len(gpus), strict=True)), described
    except DeviceSpecError as error:
        raise DeviceSpecError(f"{path}: {error}") from None


def _described(values: Mapping[str, Any]) -> str:
    """Spell a machine with the names that its file gives, such as "a workstation with 2 x T4, 16 GiB"."""
    gpus = [
        f"{gpu.get('count', 1)} x {gpu.get('name', 'GPU')}, {gpu.get('memory', '16 GiB')}"
        for gpu in values.get("gpu", [])
    ]
    return f"{values.get('name', 'a machine')} with {' and '.join(gpus) or 'no GPU'}"


def _list(path: Path, name: str, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise DeviceSpecError(f"{path}: {name} = {value!r} must be a list")


def _tables(path: Path, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return value
    raise DeviceSpecError(f"{path}: write each kind of GPU as a table [[gpu]]")


def _gpus(path: Path, entry: dict[str, Any]) -> list[tuple[int, tuple[int, ...]]]:
    _only(path, "[[gpu]]", entry, {"name", "count", "memory", "virtual"})
    memory = _bytes(path, entry.get("memory", "16 GiB"))
    split = tuple(_bytes(path, part) for part in _list(path, "virtual", entry.get("virtual", [])))
    if sum(split) > memory:
        raise DeviceSpecError(f"{path}: the virtual GPUs need more memory than the {memory >> 20} MiB of their GPU")
    return [(memory, split)] * _number(path, "count", entry.get("count", 1), least=0)


def _only(path: Path, where: str, values: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(values) - known)
    if unknown:
        raise DeviceSpecError(f"{path}: {where} has {unknown[0]!r}, which is unknown; known are {choices(known)}")


def _number(path: Path, name: str, value: Any, *, least: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= 64:
        return value
    raise DeviceSpecError(f"{path}: {name} = {value!r} must be a whole number from {least} to 64")


def _bytes(path: Path, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if found is None or found[2].lower() not in _UNITS:
        raise DeviceSpecError(f'{path}: {value!r} is not an amount of memory; write one like "16 GiB" or 1073741824')
    return int(float(found[1]) * _UNITS[found[2].lower()])
