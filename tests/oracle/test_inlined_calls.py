"""Calls that stay in a placed graph and that Grappler inlines then: TensorFlow's own log of inlining is the truth."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import simplace
from simplace.checks.verdicts import of_agreement
from simplace.views.text.summary import agreement_line

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("forked")]

IN_DATASETS = """\
    import tensorflow as tf
    rows = tf.data.Dataset.range(3)
    calls = tf.Variable(0, dtype=tf.int64)
    @tf.function
    def inner(x):
        calls.assign_add(1)
        return x * 3
    @tf.function(experimental_attributes={"_noinline": True})
    def kept(x):
        return x + 7
    @tf.function
    def outer(x):
        return inner(x) + kept(x)
    @tf.function
    def never(x):
        return x - 1
    @tf.function
    def tell(x):
        tf.print("row", x)
    def tell_each(x):
        tell(x)
        return x
    rows.map(lambda x: outer(x) * 2)  # nothing reads it
    rows.map(lambda x: never(x) * 2)
    print([int(x) for x in rows.map(lambda x: outer(x)).map(tell_each)])
"""
IN_A_SESSION = """\
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    v = tf.Variable(1.0, use_resource=True)
    @tf.function
    def pure(x):
        return x * 3.0
    @tf.function
    def writes(x):
        v.assign_add(x)
        return x + 1.0
    @tf.function
    def unused(x):
        return x - 1.0
    x = tf.placeholder(tf.float32)
    taken, left = pure(x) + writes(x), unused(x) * 2.0
    with tf.Session() as session:
        session.run(v.initializer)
        print(session.run(taken, {x: 2.0}))
"""
AS_IT_IS = """\
    import tensorflow as tf
    tf.config.optimizer.set_experimental_options({"function_optimization": False})
    @tf.function
    def inner(x):
        return x * 3
    print([int(x) for x in tf.data.Dataset.range(3).map(lambda x: inner(x))])
"""
# By program the functions whose calls are inlined, with how many calls, those that are instantiated, and the others.
FOUND = [
    (IN_DATASETS, {"outer": 1, "inner": 1, "tell": 1}, {"kept"}, {"never"}),
    (IN_A_SESSION, {"pure": 1}, set(), {"writes", "unused"}),
    (AS_IT_IS, {}, {"inner"}, set()),
]


def count_inlined(path: Path) -> int:
    """Run a program and return how many calls TensorFlow says to have inlined outside of functions that it calls."""
    told = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "inline_function_utils=3"}
    run = subprocess.run(
        [sys.executable, str(path)], env={**os.environ, **told}, capture_output=True, text=True, check=True
    )
    return len(re.findall("Successfully inlined function call node", run.stderr))


@pytest.mark.parametrize(("program", "inlined", "instantiated", "others"), FOUND)
def test_what_grappler_inlines_is_not_said_to_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, inlined: dict[str, int], instantiated: set[str],
    others: set[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(dedent(program))
    assert count_inlined(path) == sum(inlined.values())
    result = simplace.place("model.py", "cpu:1")
    calls = [placed for placed in result if placed.placement.program.kind == "call"]
    assert sorted(placed.name for placed in calls if placed.is_inlined) == sorted(inlined)
    assert {placed.name for placed in calls if placed.agreement is not None} == instantiated
    assert {placed.name for placed in calls if placed.is_uncalled and not placed.is_inlined} == others
    assert result.agrees
    assert not result.coverage.missing


def test_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(dedent(IN_A_SESSION))
    result = simplace.place("model.py", "cpu:1")
    assert agreement_line(result).endswith(
        "; 1 function not compared, as this run did not instantiate it"
        "; 1 function not compared, as Grappler inlines its call after placement"
        "; 1 function not compared, as Grappler's meta_optimizer is not replayed"
    )
    skipped = {verdict.program: verdict.skipped for verdict in of_agreement(result) if verdict.skipped}
    assert skipped == {
        "pure": "inlined by Grappler, after the caller was placed",
        "unused": "not instantiated",
        "writes": "rewritten by Grappler's meta_optimizer, which is not replayed",
    }
