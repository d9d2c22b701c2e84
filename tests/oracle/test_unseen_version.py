"""A TensorFlow that simplace was not tested with: what it lacks is said in one line, and the rest works."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from simplace.errors import ProgramError
from simplace.oracle.launch import SEARCHED, Child
from simplace.oracle.observe import observe_script

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
import sys
sys.path[0] = sys.argv[1]
from dataclasses import replace
from simplace.oracle.child import process, tf_names
tf_names.SEEN = ("1.0", "1.1")
{change}
process.main(sys.argv[2], int(sys.argv[3]))
"""
TOLD = r"is not among the versions that simplace is tested with \(1.0 to 1.1\), and lacks private names; "


def observed(tmp_path: Path, change: str):
    """Observe a program under a TensorFlow that is not among the versions seen, with a change to the list of names."""

    def start(request_file: Path, environment: Mapping[str, str], stdout: int | None) -> Child:
        command = [sys.executable, "-c", CHILD.format(change=change), SEARCHED, str(request_file), str(os.getpid())]
        return subprocess.Popen(command, env=environment, stdout=stdout, start_new_session=True)

    script = tmp_path / "model.py"
    script.write_text(PROGRAM)
    return observe_script(script, start=start)


def test_a_version_with_all_names_needs_no_word(tmp_path: Path, capfd) -> None:
    found = observed(tmp_path, "")
    assert [each.program.name for each in found.programs] == ["Session.run", "double"]
    assert (found.failure, found.remarks, capfd.readouterr().out) == (None, (), "6\n")


def test_a_part_that_lacks_a_name_is_left_out(tmp_path: Path, capfd) -> None:
    gone = 'replace(tf_names.SESSIONS, names=("python.client.session:BaseSession.gone",))'
    found = observed(tmp_path, f"tf_names.SESSIONS = {gone}\ntf_names.OPTIONAL = (tf_names.SESSIONS,)")
    (remark,) = found.remarks
    assert remark.endswith(
        "what does not work: the observation of sessions (for want of python.client.session:BaseSession.gone)."
    )
    assert [each.program.name for each in found.programs] == ["double"]
    assert (found.failure, capfd.readouterr().out) == (None, "6\n")


def test_without_an_essential_name_nothing_starts(tmp_path: Path) -> None:
    gone = 'replace(tf_names.PLACEMENTS, names=("python.gone:x",))'
    with pytest.raises(ProgramError, match=TOLD) as caught:
        observed(tmp_path, f"tf_names.PLACEMENTS = {gone}")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("the observation of functions (for want of python.gone:x).")
