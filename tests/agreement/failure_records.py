"""How many failures were predicted with each TensorFlow version, kept as JSON beside the records of agreement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.failures.measure import FailureCounts


def load_counts(path: Path) -> dict[str, FailureCounts]:
    """Return the counts by version; none where there is no file."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {version: FailureCounts(**row) for version, row in known.items()}


def save_counts(path: Path, counts: Mapping[str, FailureCounts]) -> None:
    """Write the counts of all versions, in the order of their names."""
    rows = {version: asdict(counts[version]) for version in sorted(counts)}
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
