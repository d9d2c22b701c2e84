"""Every finding and every reason in the code has its page, in the terminal and in docs/rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from simplace.cli import main
from simplace.doctor.rule_pages import RulePage, find_rule_page, read_rule_pages
from simplace.doctor.silent_failures import ALL_FINDINGS
from simplace.errors import UnknownRuleError
from simplace.explain.eager import RULES as EAGER_RULES
from simplace.explain.finding import Finding
from simplace.explain.reasons import ALL_REASONS, CompiledByXla
from tests.docs.rule_markdown import ROOT, RULES, find_page_file, write_index, write_page

PAGES = read_rule_pages()


def kinds_of(kind: type[Finding]) -> set[type[Finding]]:
    """Return a kind of finding with all kinds below it."""
    return {kind}.union(*(kinds_of(each) for each in kind.__subclasses__()))


def test_every_finding_and_reason_has_a_page() -> None:
    findings = {kind.rule for kind in kinds_of(Finding) if kind.rule and kind.__module__.startswith("simplace.")}
    assert findings == {kind.rule for kind in ALL_FINDINGS}
    reasons = {reason.rule for reason in ALL_REASONS} | {CompiledByXla.rule} | set(EAGER_RULES.values())
    wanted = {f"doctor/{rule}" for rule in findings} | {f"reason/{rule}" for rule in reasons}
    assert sorted(page.full_name for page in PAGES) == sorted(wanted)
    assert {path.relative_to(RULES).with_suffix("").as_posix() for path in RULES.glob("*/*.md")} == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.full_name)
def test_a_page_has_all_of_its_parts(page: RulePage) -> None:
    assert all((page.title, page.meaning, page.sources, page.remedy, page.program))
    assert not re.search(r"\]\(", page.meaning + page.remedy), "a terminal shows no links"
    for source in page.sources:
        assert re.fullmatch(r"(tensorflow|third_party)/[\w/]+\.(cc|h|py|proto)", source), source


def test_python_files_of_tensorflow_exist() -> None:
    spec = find_spec("tensorflow")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parents[1]
    named = {source for page in PAGES for source in page.sources if source.endswith(".py")}
    assert [source for source in sorted(named) if not (folder / source).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.full_name)
def test_the_page_and_its_program_are_those_of_the_data(page: RulePage, kept: Callable[[Path, str], None]) -> None:
    kept(ROOT / page.file, page.program)
    kept(find_page_file(page), write_page(page, PAGES))


def test_the_index_lists_all_rules(kept: Callable[[Path, str], None]) -> None:
    kept(RULES / "index.md", write_index(PAGES))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.full_name)
def test_the_output_shown_names_the_rule(page: RulePage) -> None:
    text = find_page_file(page).read_text(encoding="utf-8")
    output = text.partition(f"$ simplace {page.command}\n")[2]
    if page.family == "doctor":
        assert f"\n{page.level}: {page.name}" in output
        assert f"  see: {page.full_name}\n" in output
    else:
        assert " runs on " in output


@pytest.mark.parametrize("name", ["doctor/late-log-flag", "late-log-flag", "LATE_LOG_FLAG", "doctor/late-log-flag/"])
def test_a_rule_is_found_by_its_name(name: str) -> None:
    assert find_rule_page(PAGES, name).full_name == "doctor/late-log-flag"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("late-log-flg", "did you mean doctor/late-log-flag?"), ("reason/colocate", "did you mean reason/colocated"),
     ("qqq", "simplace explain --rule lists all of them")],
)  # fmt: skip
def test_an_unknown_rule_gets_near_ones(name: str, hint: str) -> None:
    with pytest.raises(UnknownRuleError, match=re.escape(hint)):
        find_rule_page(PAGES, name)


def test_the_terminal_prints_a_rule_and_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--rule", "late-log-flag"]) == 0
    shown = capsys.readouterr().out
    page = find_rule_page(PAGES, "late-log-flag")
    assert shown.startswith("doctor/late-log-flag (warning): The placement log was switched on too late\n")
    assert all(" ".join(text.split()) in " ".join(shown.split()) for text in (page.meaning, page.remedy, page.program))
    assert main(["explain", "--rule"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{each.full_name} " in listed for each in PAGES)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--rule", "nosuch"], "simplace: no rule is called 'nosuch'; "),
        (["model.py", "--rule", "late-log-flag"], "simplace: --rule needs no TARGET, and got 'model.py'"),
    ],
)
def test_what_cannot_be_explained_gives_one_line(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(complaint)
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(("words", "missing"), [(["model.py"], "NODE"), ([], "TARGET, NODE")])
def test_without_a_rule_a_target_and_a_node_are_needed(
    words: list[str], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *words])
    assert ended.value.code == 2
    said = f"simplace: the following arguments are required: {missing} (see simplace explain --help)\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("width", [60, 80])
def test_text_keeps_to_the_width(width: int) -> None:
    from simplace.views.text.rule_text import write_rule

    for page in PAGES:
        lines = write_rule(page, width).splitlines()
        prose = [line for line in lines if not line.startswith(("    ", "Try it"))]
        assert [line for line in prose if len(line) > width and " " in line.strip()] == []
