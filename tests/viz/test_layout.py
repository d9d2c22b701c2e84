from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from device_figures import FIGURES, every_mark, two_gpu_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import viz
from viz import Edge, Figure, Group, LayoutError, Node, draw, engine, render, to_dot
from viz.engine import run_graphviz
from viz.names import visible

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", autouse=True)
def _processes_of_their_own(drawn_by_forks: None) -> Iterator[None]:
    """Draw as a user's program does, in a new process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "subprocess", subprocess)
        yield


@pytest.mark.parametrize(("file_format", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG\r\n"), ("pdf", b"%PDF-")])
def test_draws_each_format(file_format: str, magic: bytes) -> None:
    assert draw(two_gpu_model(), file_format).startswith(magic)  # type: ignore[arg-type]


@pytest.mark.parametrize("file_format", ["svg", "pdf"])
def test_same_figure_gives_same_bytes(file_format: str) -> None:
    assert draw(every_mark(), file_format) == draw(every_mark(), file_format)  # type: ignore[arg-type]


def test_a_pdf_bears_no_date_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert b"/CreationDate (D:19700102000000" in draw(two_gpu_model(), "pdf")


def test_text_survives_a_machine_without_fonts(tmp_path: Path) -> None:
    empty = tmp_path / "fonts.conf"
    empty.write_text("<fontconfig/>", encoding="utf-8")
    code = "import sys; from viz import Figure, Node, draw; sys.stdout.buffer.write(draw(Figure('Title'), 'pdf'))"
    environment = {**os.environ, "FONTCONFIG_FILE": str(empty), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    assert b"DejaVu" in done.stdout
    assert done.stderr == b""


@pytest.fixture
def dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `dot` on PATH that draws its own arguments."""
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho \"<svg xmlns='http://www.w3.org/2000/svg'><g id='$1$2'/></svg>\"\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("GRAPHVIZ_DOT", raising=False)
    return program


def test_the_wheel_draws_beside_a_dot_on_path(dot: Path) -> None:
    assert b"-Tsvg" not in render("digraph {}")


def test_the_dot_asked_for_draws(dot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHVIZ_DOT", str(dot))
    assert b"-Tsvg-Gdpi=72" in render("digraph {}")


def test_the_dot_on_path_draws_without_the_wheel(dot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz.engine.find_spec", lambda _: None)
    assert b"-Tsvg-Gdpi=72" in render("digraph {}")


def test_says_what_to_install_without_any_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("viz.engine.find_spec", lambda _: None)
    with pytest.raises(LayoutError, match="pip install pygraphviz"):
        render("digraph {}")


def test_a_dot_asked_for_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHVIZ_DOT", "/nowhere/dot")
    with pytest.raises(LayoutError, match="GRAPHVIZ_DOT='/nowhere/dot' is no program; unset it"):
        render("digraph {}")


def test_nothing_of_the_machine_changes_a_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw(every_mark())
    for name in ("HOME", "GVBINDIR", "DOTFONTPATH", "FONTCONFIG_SYSROOT"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("LC_ALL", "LANG", "PANGO_LANGUAGE", "FC_LANG"):
        monkeypatch.setenv(name, "ja_JP.UTF-8")
    assert draw(every_mark()) == drawn


@pytest.mark.parametrize(("file_format", "only_ours"), [("dot", True), ("svg", True), ("png", False)])
def test_text_is_measured_with_our_fonts_alone(
    file_format: str, only_ours: bool, dot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dot.parent / ".fonts").mkdir()
    dot.write_text('#!/bin/sh\n/bin/cat "$FONTCONFIG_FILE"\n')
    monkeypatch.setenv("GRAPHVIZ_DOT", str(dot))
    monkeypatch.setenv("HOME", str(dot.parent))
    config = run_graphviz("digraph {}", file_format, 72, 60).decode()
    assert (re.findall("<dir>(.*?)</dir>", config) == [str(Path(viz.__file__).with_name("fonts"))]) is only_ours


def test_refuses_unknown_format() -> None:
    with pytest.raises(LayoutError, match="cannot draw as 'gif'; choose from: svg, png, pdf"):
        draw(Figure(), "gif")  # type: ignore[arg-type]


def test_bad_dot_is_a_layout_error() -> None:
    with pytest.raises(LayoutError, match="Graphviz failed"):
        render("digraph { a -> ")


def test_layout_stops_at_the_time_limit() -> None:
    with pytest.raises(LayoutError, match=r"did not finish within 0\.001 s .* draw fewer nodes"):
        draw(two_gpu_model(), timeout_s=0.001)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_svg_holds_each_name_in_full_as_hover_text(name: str) -> None:
    figure = FIGURES[name]()
    root = ElementTree.fromstring(draw(figure))
    titles = {title.text or "" for title in root.iter(f"{SVG}title")}
    for node in figure.nodes:
        full = ": ".join(visible(part) for part in (node.label, node.tooltip) if part)
        assert full.split() == [] or any(full.split() == title.split() for title in titles)


def test_svg_has_no_script_link_or_comment() -> None:
    drawing = draw(FIGURES["hostile"]()).decode()
    root = ElementTree.fromstring(drawing)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "g", "title", "desc", "polygon", "polyline", "path", "ellipse", "text"
    }  # fmt: skip
    assert "<!--" not in drawing


def test_thai_is_drawn_without_the_dictionary_of_the_machine(dot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ไทย" in render('digraph { a [label="ไทย"] }').decode()
    dot.write_text('#!/bin/sh\n/bin/cat "$LIBTHAI_DICTDIR/thbrk.tri"\n')
    monkeypatch.setenv("GRAPHVIZ_DOT", str(dot))
    assert run_graphviz("digraph {}", "svg", 72, 60).startswith(b"\xd9\xfc\xd9\xfc")  # libdatrie's


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(names=st.lists(st.text(max_size=60), min_size=1, max_size=8, unique=True))
def test_any_names_give_dot_that_parses_and_well_formed_svg(names: list[str]) -> None:
    group = Group(names[0], names[-1], names[0], "GPU", 3)
    nodes = tuple(Node(name, name, name, group.id, requested=name, tooltip=name) for name in names)
    edges = tuple(Edge(name, names[0], "copy", name) for name in names)
    root = ElementTree.fromstring(render(to_dot(Figure(names[0], names[-1], (group,), nodes, edges))))
    drawn = [element for element in root.iter(f"{SVG}g") if element.get("class") == "node"]
    tags = sum(bool(edge.label) for edge in edges)
    assert len(drawn) >= len(nodes) + tags


def test_svg_draws_device_titles_above_the_lines() -> None:
    drawing = draw(every_mark(), "svg").decode()
    last_line = drawing.rindex('class="edge"')
    assert drawing.rindex(">GPU:0<") > last_line
    assert drawing.count('aria-hidden="true"') >= 3
