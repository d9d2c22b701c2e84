"""Read the constants of the GPU cost model, and write them in the same form: a fit rewrites the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "data" / "gpu_constants.json"
SCHEMA = "simplace/gpu-constants/1"


@dataclass(frozen=True, slots=True)
class GpuConstants:
    """Record of what was fitted.

    `groups` are the constants by family of kernels, `errors` the mean error of each class of operators on GPUs that the
    fit had not seen (of collectives, on machines or sizes), `sources` the repositories that the times are from.
    """

    groups: Mapping[str, Mapping[str, float]]
    errors: Mapping[str, float]
    sources: tuple[str, ...]


@cache
def read_constants(file: Path = FILE) -> GpuConstants:
    """Return the constants of a file."""
    values = json.loads(file.read_text(encoding="utf-8"))
    if values["schema"] != SCHEMA:
        raise ValueError(f"{file} is not of schema {SCHEMA}")
    return GpuConstants(values["groups"], values["errors"], tuple(values["sources"]))


def format_constants(constants: GpuConstants) -> str:
    """Return the text of a file, four digits a constant: more would say more than a fit knows.

    >>> read_constants() == GpuConstants(**{k: v for k, v in json.loads(format_constants(read_constants())).items()
    ...     if k != "schema"} | {"sources": read_constants().sources})
    True
    """
    groups = {
        group: {name: float(f"{value:.4g}") for name, value in sorted(values.items())}
        for group, values in sorted(constants.groups.items())
    }
    errors = {name: float(f"{value:.3g}") for name, value in sorted(constants.errors.items())}
    values = {"schema": SCHEMA, "sources": list(constants.sources), "errors": errors, "groups": groups}
    return json.dumps(values, indent=1) + "\n"
