"""Find the CPU that a user names: one of the library, one described, or one that was measured."""

from __future__ import annotations

import difflib
import os

from simplace.costs.calibrated_cpu import ENTRY, CalibratedCpu, parse_cpu
from simplace.costs.cpu_sheet import DESKTOP_CORE, SERVER_CORE, CpuSheet, list_core_peaks
from simplace.costs.cpu_sheets import SHEETS, find_cpu_sheet, fold_cpu_name
from simplace.costs.cpu_spec import EXAMPLE, DescribedCpu, parse_cpu_spec
from simplace.costs.hardware import CPU_2_CORES, Processor
from simplace.errors import MalformedError, SimplaceError, UnreadableError, join_alternatives
from simplace.input_file import read_json

_MOST_OF_A_DESKTOP = 16  # cores; a CPU of more is a server's


def find_cpu(name: str) -> Processor:
    """Return a core of the CPU of a name: "" is the CPU of two cores that is assumed where none is named.

    Others are a short name or a model name of the library, a description, or a cost file that has one.
    Raises `SimplaceError` for what is none of these.

    >>> find_cpu("epyc-7763").cores, find_cpu("4 cores, 3 GHz, 256 bit, 2 fma, 40 GB/s").flops("float32", False) / 1e9
    (64, 96.0)
    """
    if not name:
        return CPU_2_CORES
    sheet = find_cpu_sheet(name)
    if sheet is not None:
        return _use_sheet(sheet)
    if os.path.isfile(name) or name.endswith(".json"):
        return use_calibration(_read_calibration(name))
    if "," in name:
        return _use_description(parse_cpu_spec(name))
    close = difflib.get_close_matches(fold_cpu_name(name), SHEETS, n=4)
    hint = (
        f"did you mean {join_alternatives(close)}?"
        if close
        else f"docs/costs.md lists all, such as xeon-8375c, epyc-7763; or describe it, as in {EXAMPLE!r}, "
        "or name a cost file of simplace measure"
    )
    raise SimplaceError(f"{name!r} is not a CPU that simplace has performance data for: {hint}")


def use_calibration(cpu: CalibratedCpu) -> Processor:
    """Return a core of a CPU with the figures that were measured."""
    return Processor(
        f"{cpu.model or 'CPU'} (calibrated)", cpu.peak, cpu.core_bandwidth, 0, cpu.clock or CPU_2_CORES.clock,
        cpu.least_s, launch_s=0.0, cores=cpu.cores, whole_bandwidth=cpu.bandwidth, reads=cpu.reads, writes=cpu.writes,
        products=cpu.products, vector_flops=cpu.vector,
    )  # fmt: skip


def _use_sheet(sheet: CpuSheet) -> Processor:
    return Processor(
        sheet.name, sheet.peak, min(sheet.core_bandwidth, sheet.bandwidth), 0, sheet.clock, CPU_2_CORES.least_s,
        launch_s=0.0, cores=sheet.cores, whole_bandwidth=sheet.bandwidth,
    )  # fmt: skip


def _use_description(cpu: DescribedCpu) -> Processor:
    """Return a core of a CPU as described: one of up to 16 draws what a desktop's does, one of more a server's."""
    assumed = SERVER_CORE if cpu.cores > _MOST_OF_A_DESKTOP else DESKTOP_CORE
    return Processor(
        f"CPU of {cpu.cores} cores", list_core_peaks(cpu.clock, cpu.bits, cpu.fma),
        min(cpu.core_bandwidth or assumed, cpu.bandwidth), 0, cpu.clock, CPU_2_CORES.least_s, launch_s=0.0,
        cores=cpu.cores, whole_bandwidth=cpu.bandwidth,
    )  # fmt: skip


def _read_calibration(file: str) -> CalibratedCpu:
    try:
        values = read_json(file)
    except (MalformedError, UnreadableError) as error:
        raise SimplaceError(f"{file}: cannot read the CPU: {error}") from None
    if not isinstance(values, dict) or ENTRY not in values:
        raise SimplaceError(f'{file}: has no "{ENTRY}"; simplace measure TARGET -o FILE writes a cost file that has it')
    return parse_cpu(file, values[ENTRY])
