"""The notebook in docs/ shows what its cells give: text word for word, of pages and figures the words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from notebooks import run

FILE = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"


def words(output: dict[str, Any]) -> dict[str, Any]:
    """Reduce an output to what it says; where the parts of a figure stand depends on the version of Graphviz."""
    if output["output_type"] == "stream":
        return {"said": "".join(output["text"])}
    data = {kind: "".join(lines) for kind, lines in output["data"].items()}
    return {kind: text if kind == "text/plain" else sorted(pieces(text)) for kind, text in data.items()}


def pieces(markup: str) -> list[str]:
    """List what stands between tags."""
    return [piece.strip() for piece in re.findall(r">([^<>]+)<", markup) if piece.strip()]


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_the_outputs_stored_are_the_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    notebook = json.loads(FILE.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    for number, (cell, outputs) in enumerate(run(notebook), start=1):
        if request.config.getoption("--rewrite-golden"):
            cell["outputs"], cell["execution_count"] = outputs, number
        stored = [words(output) for output in cell["outputs"]]
        assert [words(output) for output in outputs] == stored, f"cell {number}; pytest --rewrite-golden"
    if request.config.getoption("--rewrite-golden"):
        FILE.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def test_every_cell_has_run_in_order() -> None:
    notebook = json.loads(FILE.read_text(encoding="utf-8"))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in codes] == list(range(1, len(codes) + 1))
    assert sum(bool(cell["outputs"]) for cell in codes) >= 8
    assert not re.search(r"/(?:home|root|tmp|work)/", json.dumps(notebook))
