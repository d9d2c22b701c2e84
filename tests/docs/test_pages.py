"""What README and docs/ show is real: every block that begins with `$ simplace` is what the command prints."""

from __future__ import annotations

import fcntl
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from simplace.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RULES = sorted((ROOT / "docs" / "rules").glob("*.py"))
BLOCK = re.compile(r"^```text\n\$ (simplace [^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
WRITES = ("-o", "--output", "--json", "--junit", "--sarif", "--trace")
FIGURE = re.compile(r"-o (docs/figures/\S+\.svg)")
CUT = "[...]"  # alone on a line: lines are left out here


def shown():
    """Return for each command the blocks that show what it prints, as (page, output)."""
    blocks = {}
    for page in PAGES:
        for command, output in BLOCK.findall(page.read_text(encoding="utf-8")):
            blocks.setdefault(command, []).append((page, output))
    return blocks


@pytest.fixture
def run(shown_version, forked, tmp_path, monkeypatch, capfd):
    """Return a function that returns what a command prints; files land in `tmp_path` under a name of their own."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "120")

    def printed(command):
        main(words(command, tmp_path))
        out, err = capfd.readouterr()
        errors = [line for line in err.splitlines() if line.startswith("simplace:")]
        text = "\n".join([out.rstrip(), *errors]).strip("\n")
        return text.replace(f"{tmp_path}/", "").replace(f"{ROOT}/", "")

    return printed


def words(command, folder):
    """Take a command apart, without the name of the program; the files that it writes are to be in `folder`."""
    given = shlex.split(command)[1:]
    if given[0] == "export":
        given[2] = str(folder / given[2])  # it names its file without an option
    return [
        str(folder / Path(word).name) if before in WRITES and word != "-" else word
        for before, word in zip(["", *given], given, strict=False)
    ]


def matches(expected, printed):
    """Return whether the output is as shown; a line `[...]` stands for lines that the page leaves out."""
    parts = [re.escape(part.strip("\n")) for part in f"\n{expected}\n".split(f"\n{CUT}\n")]
    pattern = r"(?:\n|\n.*\n|)".join(parts)
    return re.fullmatch(rf"\n*{pattern}\n*", f"\n{printed}\n", flags=re.DOTALL) is not None


@pytest.mark.tf
@pytest.mark.parametrize(("command", "blocks"), shown().items(), ids=shown())
def test_the_output_shown_is_the_output(command, blocks, run, tmp_path, kept, request):
    printed = run(command)
    for name in FIGURE.findall(command):
        kept(ROOT / name, (tmp_path / Path(name).name).read_bytes().decode())
    for page, expected in blocks:
        if request.config.getoption("--rewrite-golden"):
            new = printed if CUT not in expected.splitlines() else cut_alike(expected.rstrip(), printed)
            rewrite(page, f"```text\n$ {command}\n", expected, new)
            continue
        assert matches(expected.rstrip(), printed), f"{page.name} shows other text; pytest --rewrite-golden:\n{printed}"


def cut_alike(expected, printed):
    """Leave lines out of an output as a page does: of each part that is shown the most similar lines, in order."""
    lines, parts, at = printed.splitlines(), [], 0
    for part in f"\n{expected}\n".split(f"\n{CUT}\n"):
        shown = part.strip("\n").splitlines()
        last = len(lines) - len(shown)
        starts = range(at, last + 1) if parts else (0,)
        if len(parts) == expected.splitlines().count(CUT):
            starts = (last,) if shown else (len(lines),)
        best = max(starts, key=lambda i: sum(map(measure_likeness, shown, lines[i : i + len(shown)])), default=last)
        parts.append("\n".join(lines[best : best + len(shown)]))
        at = best + len(shown)
    return f"\n{CUT}\n".join(parts).strip("\n")


def measure_likeness(line, other):
    return SequenceMatcher(None, line, other, autojunk=False).ratio()


def rewrite(page, head, old, new):
    """Replace a block of a page; other processes of pytest may replace others of the same page meanwhile."""
    with page.open("r+", encoding="utf-8", newline="\n") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read()
        file.seek(0)
        file.write(text.replace(f"{head}{old}```", f"{head}{new}\n```"))
        file.truncate()


@pytest.mark.tf
@pytest.mark.parametrize("program", RULES, ids=lambda path: path.stem)
def test_the_figure_of_a_rule_shows_its_program(program, run, tmp_path, kept):
    name = f"rule_{program.stem}.svg"
    printed = run(f"simplace show {program.relative_to(ROOT)} --devices cpu:1,gpu:2 -o {name}")
    assert "\nagrees with TensorFlow" in printed
    kept(ROOT / "docs" / "figures" / name, (tmp_path / name).read_bytes().decode())
    page = (ROOT / "docs" / "rules" / "reason" / f"{program.stem}.md").read_text(encoding="utf-8")
    assert f"](../../figures/{name})" in page


def test_every_figure_is_drawn_by_a_command_on_a_page():
    drawn = {name for command in shown() for name in FIGURE.findall(command)}
    drawn |= {f"docs/figures/rule_{program.stem}.svg" for program in RULES}
    kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert kept == drawn


def test_a_cut_stands_for_lines_left_out():
    assert matches("a\n[...]\nd", "a\nb\nc\nd")
    assert matches("a\nd", "a\nd")
    assert cut_alike("a 1\n[...]\nc 1\n[...]", "a 2\nb\nc 2\nd") == "a 2\n[...]\nc 2\n[...]"
    assert cut_alike("[...]\nb 1\n[...]\nd 1", "a\nb 2\nc\nd 2") == "[...]\nb 2\n[...]\nd 2"
    assert matches("[...]\nc\nd", "a\nb\nc\nd")
    assert matches("a\n[...]", "a\nb")
    assert not matches("a\n[...]\nd", "a\nb\ne")


def test_processes_that_rewrite_one_page_lose_nothing(tmp_path):
    page, names = tmp_path / "page.md", [f"$ simplace {i}" for i in range(40)]
    page.write_text("".join(f"```text\n{name}\nold\n```\n" for name in names), encoding="utf-8")
    with ThreadPoolExecutor(8) as threads:  # each opens the page for itself, as processes do
        list(threads.map(lambda name: rewrite(page, f"```text\n{name}\n", "old\n", "new"), names))
    assert page.read_text(encoding="utf-8") == "".join(f"```text\n{name}\nnew\n```\n" for name in names)


def test_links_of_the_readme_lead_somewhere():
    prose = re.sub(r"^```.*?^```", "", PAGES[0].read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (ROOT / target).exists(), target
