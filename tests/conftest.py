"""What tests share: files to compare text with, and children that are forked where TensorFlow is imported already."""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from simplace import targets
from simplace.kernels.installed import installed_version
from simplace.oracle.import_question import ImportQuestion
from simplace.oracle.launch import Forks, starting_by
from simplace.pipeline import watched_by
from tests.stages import verify_stage
from tests.warm_processes import WarmProcesses, draw_by
from viz import engine

SHOWN = "2.21.0"

# No test depends on a time. The same examples in each run, but for a hunt for new faults.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=50
)
settings.register_profile("hunt", settings.get_profile("patient"), derandomize=False, max_examples=200)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes `-n auto` starts: one more than processors, since tests wait for their children."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_finish() -> None:
    assert "tensorflow" not in sys.modules, "a module that pytest imports to collect its tests imports TensorFlow"
    gc.freeze()  # thousands of tests, and all modules: no collection has to walk them


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write for each reason how many tests were skipped for it."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    for reason, count in reasons.items():
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture
def shown_version() -> str:
    """Return the version of TensorFlow that pages, figures and golden files of whole programs were made with."""
    here = installed_version()
    if here != SHOWN:
        pytest.skip(f"what is shown of whole programs was made with TensorFlow {SHOWN}, not {here}")
    return SHOWN


@pytest.fixture
def kept(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Return `kept(file, text)`: `text` must equal the file, byte by byte."""
    rewrite = request.config.getoption("--rewrite-golden")

    def check(file: Path, text: str) -> None:
        if rewrite:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            return
        if not file.exists():
            pytest.fail(f"no golden file {file}; write it with: pytest --rewrite-golden, then read it")
        expected = file.read_bytes().decode()
        assert text == expected, f"{file} differs; if the new text is right: pytest --rewrite-golden"

    return check


@pytest.fixture
def golden(request: pytest.FixtureRequest, kept: Callable[[Path, str], None]) -> Callable[[str, str], None]:
    """Return `golden(name, text)`: `text` must equal the file golden/<name> in the folder of the test."""
    folder = Path(request.path).parent / "golden"
    return lambda name, text: kept(folder / name, text)


@pytest.fixture(scope="session", autouse=True)
def verified() -> Iterator[None]:
    """Verify what each stage of the pipeline hands on, in all tests."""
    with watched_by(verify_stage):
        yield


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcesses]:
    with WarmProcesses() as processes:
        yield processes


@pytest.fixture(scope="session", autouse=True)
def drawn_by_forks(warm: WarmProcesses) -> Iterator[None]:
    """Draw in forks of one process, which is quicker, in all tests but those of `viz.engine` itself."""
    with pytest.MonkeyPatch.context() as patched:
        ways = SimpleNamespace(run=draw_by(warm, subprocess.run), TimeoutExpired=subprocess.TimeoutExpired)
        patched.setattr(engine, "subprocess", ways)
        yield


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[], str]], str]:
    """Return `made_once(name, make)`: the text that `make()` gives, which one of pytest's processes makes for all."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    def find_or_make(name: str, make: Callable[[], str]) -> str:
        made = folder / name
        with open(folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                made.write_text(make())
        return made.read_text()

    return find_or_make


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    with Forks() as start:
        yield start


class _Imported(ImportQuestion):
    def refuse(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def imports_taken_for_granted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no TensorFlow whether it imports a graph file, in tests that run none."""
    if request.node.get_closest_marker("tf") is None:
        monkeypatch.setattr(targets, "ask_import", lambda _: nullcontext(_Imported()))


@pytest.fixture
def forked(forks: Forks) -> Iterator[None]:
    """Run what a test runs under TensorFlow in forks, without an import each; test_starting.py says they are alike."""
    with starting_by(forks):
        yield
