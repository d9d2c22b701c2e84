"""The page of all samples' figures, which one command draws and measures."""

from pathlib import Path

import pytest

from benchmarks.figures import main


@pytest.mark.tf
def test_sheet_has_every_figure_of_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = tmp_path / "figures.md"
    docs.write_text("<!-- measured by benchmarks/figures.py -->\n<!-- end of what is measured -->\n")
    main([str(tmp_path), *"--samples matmul --gpus 2 --styles paper --docs".split(), str(docs)])
    kinds = ("overview", "placement", "partition", "colocation", "timeline", "parallelism", "memory")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert [f"matmul.2.{kind}.paper.svg" in page for kind in kinds] == [True] * 7
    assert all((tmp_path / f"matmul.2.{kind}.paper.svg").stat().st_size for kind in kinds)
    assert [line.split(" | ")[0] for line in docs.read_text().splitlines()[3:-1]] == [f"| {kind}" for kind in kinds]
    assert "matmul, 2 GPUs" in capsys.readouterr().out
