"""A TensorFlow that simplace was not tested with: what it lacks is said in one line, and the rest works."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from simplace.errors import ProgramError
from simplace.oracle.launch import Child
from simplace.oracle.observe import observe_script
from simplace.program.observation import Observation
from tests.warm_processes import WarmProcesses

pytestmark = pytest.mark.tf

PROGRAM = """\
import tensorflow as tf
with tf.Graph().as_default():
    print(tf.compat.v1.Session().run(tf.constant(2) * 3))
@tf.function
def double(x):
    return x + x
double(tf.constant(1.0))
"""
CHILD = """\
import os, sys
from dataclasses import replace
from simplace.oracle import protocol
from simplace.oracle.child import process, tf_names
os.environ[protocol.FORKED_FROM] = str(os.getppid())
tf_names.SEEN = ("1.0", "1.1")
{change}
process.main(sys.argv[1], os.getppid())
"""
TOLD = r"is not among the versions that simplace is tested with \(1.0 to 1.1\), and lacks private names; "


@pytest.fixture
def observed(warm: WarmProcesses, tmp_path: Path) -> Callable[[str], Observation]:
    """Observe a program under a TensorFlow that is not among the versions seen, with a change to the list of names."""

    def run(change: str) -> Observation:
        def start(request_file: Path, environment: Mapping[str, str], stdout: int | None) -> Child:
            lasting = {name: value for name, value in environment.items() if name != "PYTEST_CURRENT_TEST"}
            code, streams = CHILD.format(change=change), (0, 1 if stdout is None else stdout, 2)
            modules = ["simplace.oracle.child.run_target"]
            return warm.start(modules, code, [str(request_file)], environment=lasting, streams=streams)

        script = tmp_path / "model.py"
        script.write_text(PROGRAM)
        return observe_script(script, start=start)

    return run


def test_a_version_with_all_names_needs_no_word(observed, capfd) -> None:
    found = observed("")
    assert [each.program.name for each in found.programs] == ["Session.run", "double"]
    assert (found.failure, found.remarks, capfd.readouterr().out) == (None, (), "6\n")


def test_a_part_that_lacks_a_name_is_left_out(observed, capfd) -> None:
    gone = 'replace(tf_names.SESSIONS, names=("python.client.session:BaseSession.gone",))'
    found = observed(f"tf_names.SESSIONS = {gone}\ntf_names.OPTIONAL = (tf_names.SESSIONS,)")
    (remark,) = found.remarks
    assert remark.endswith(
        "what does not work: the observation of sessions (for want of python.client.session:BaseSession.gone)."
    )
    assert [each.program.name for each in found.programs] == ["double"]
    assert (found.failure, capfd.readouterr().out) == (None, "6\n")


def test_without_an_essential_name_nothing_starts(observed) -> None:
    gone = 'replace(tf_names.PLACEMENTS, names=("python.gone:x",))'
    with pytest.raises(ProgramError, match=TOLD) as caught:
        observed(f"tf_names.PLACEMENTS = {gone}")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("the observation of functions (for want of python.gone:x).")
