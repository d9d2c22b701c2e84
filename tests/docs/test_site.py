"""The site holds together: pages, links, anchors, commands and versions, without building it."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from simplace import __version__
from simplace.kernels.registry import KernelTable
from tests.docs.test_pages import FIGURE, shown

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
MADE = ("live/towers_on_cpu.html",)  # by .ci/site
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$|`[^`\n]+`", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def links_of(page: str) -> list[str]:
    """Return the targets of a page's links and pictures, without those to other hosts."""
    return [target for target in LINK.findall(CODE.sub("", read(page))) if ":" not in target]


@cache
def anchors_of(page: str) -> frozenset[str]:
    """Return the anchors of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL)
    return frozenset(slug(heading) for heading in re.findall(r"^#{1,6} (.*)$", text, flags=re.MULTILINE))


def slug(heading: str) -> str:
    """Return a heading's anchor as Python-Markdown makes it.

    >>> slug('4. The `log` prints "nothing"')
    '4-the-log-prints-nothing'
    """
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    plain = plain.encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


@pytest.mark.parametrize("page", PAGES)
def test_brackets_are_no_references(page: str) -> None:
    """Two pairs of brackets in a row, as in errors of TensorFlow, would be a link that the site does not find."""
    assert re.findall(r"\] ?\[[^\]\n]*\](?!\()", CODE.sub("", read(page))) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_pages_and_anchors(page: str) -> None:
    for target in links_of(page):
        name, _, anchor = target.partition("#")
        to = (DOCS / page).parent.joinpath(name).resolve() if name else DOCS / page
        assert to.is_relative_to(DOCS), f"{page}: {target} is not part of the site"
        inner = to.relative_to(DOCS).as_posix()
        assert inner in MADE or to.is_file(), f"{page}: {target}"
        assert not anchor or anchor in anchors_of(inner), f"{page}: {target}"


def test_the_navigation_has_every_page_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert sorted(re.findall(r"^ +- (?:.*: )?(\S+\.md)$", text, flags=re.MULTILINE)) == PAGES


def test_the_site_is_built_strictly_with_what_the_pages_link_to() -> None:
    script = (ROOT / ".ci" / "site").read_text(encoding="utf-8")
    assert 'mkdocs" build --strict' in script
    assert all(f"docs/{made}" in script for made in MADE)
    assert "  anchors: warn" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_a_picture_of_the_gallery_is_drawn_by_the_command_below_it() -> None:
    text = read("gallery.md")
    drawn = {name: command for command in shown() for name in FIGURE.findall(command)}
    found = re.findall(r"^!\[[^\]]+\]\((figures/\S+)\)\n\n```sh\n(.*)\n```$", text, flags=re.MULTILINE)
    assert len(found) == text.count("![") >= 12
    for picture, command in found:
        rule = re.fullmatch(r"figures/rule_(\w+)\.svg", picture)
        of_rule = rule and f"simplace show docs/rules/{rule[1]}.py --devices cpu:1,gpu:2 -o docs/{picture}"
        assert command == (of_rule or drawn[f"docs/{picture}"])


def test_versions_are_those_of_the_code() -> None:
    text = read("versions.md")
    assert f"simplace {__version__}" in text
    assert all(version in text for version in KernelTable.versions())
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{__version__}}}" in read("papers.md")


def test_versions_are_listed_the_newest_first(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0"):
        tmp_path.joinpath(name).mkdir()
        tmp_path.joinpath(name, "index.html").touch()
    subprocess.run([sys.executable, str(ROOT / ".ci" / "site-versions"), str(tmp_path)], check=True)
    listed = json.loads(tmp_path.joinpath("versions.json").read_text(encoding="utf-8"))
    assert [each["version"] for each in listed] == ["0.10.0", "0.9.0"]
    assert "url=0.10.0/" in tmp_path.joinpath("index.html").read_text(encoding="utf-8")


def test_the_readme_leads_to_the_site() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in LINK.findall(text):
        name, _, anchor = target.partition("#")
        if name.startswith("docs/") and anchor:
            assert anchor in anchors_of(name.removeprefix("docs/")), target
    assert "](docs/live.md)" in text


def test_outputs_that_are_sentences_wrap() -> None:
    hook = runpy.run_path(str(ROOT / ".ci/wrapped_pages.py"))["on_page_content"]
    pages = [SimpleNamespace(file=SimpleNamespace(src_uri=name)) for name in ("rules/doctor/refused.md", "memory.md")]
    assert [hook("<p>", page, config={}, files=()) for page in pages] == ['<div class="wrapped-page"><p></div>', "<p>"]
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "hooks:\n  - .ci/wrapped_pages.py\n" in site
    assert "pygments_lang_class: true" in site  # the style sheet tells outputs from programs by it
    assert ".wrapped-page :is(.language-text" in read("stylesheets/tables.css")
