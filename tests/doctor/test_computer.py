"""What the doctor says of a computer, by what it has."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from simplace.cli import main
from simplace.doctor.environment import Computer, judge_computer

HERE = Computer(
    system="Linux x86_64", python="3.11.7", tensorflow="2.21.0", cuda="CUDA 12.5.1 and cuDNN 9", tables=("2.21.0",),
    gpus=("NVIDIA T4",), cuda_libraries=(), compiler="/usr/bin/cc", compiler_missing="", drawing="pygraphviz",
    drawing_missing="", variables=MappingProxyType({}),
)  # fmt: skip


def states(**changes):
    return {
        fact.topic: (fact.state, fact.text) for fact in judge_computer(replace(HERE, **changes)) if fact.state != "ok"
    }


def test_all_is_well():
    assert states() == {}
    texts = [fact.text for fact in judge_computer(HERE)]
    assert texts[1] == "1: NVIDIA T4; TensorFlow requires CUDA 12.5.1 and cuDNN 9"


@pytest.mark.parametrize(
    ("changes", "topic", "state", "text"),
    [
        ({"tensorflow": ""}, "TensorFlow", "wrong", "not installed in this Python 3.11.7"),
        ({"tensorflow": "2.99.0"}, "TensorFlow", "note", "2.99.0 on Python 3.11.7, Linux x86_64"),
        ({"gpus": None}, "GPUs", "note", "none: no NVIDIA driver is loaded, so TensorFlow sees the CPU alone"),
        ({"gpus": ()}, "GPUs", "wrong", "the NVIDIA driver lists no GPU"),
        ({"cuda": ""}, "GPUs", "wrong", "1: NVIDIA T4, but this build of TensorFlow has no GPU kernels"),
        ({"cuda_libraries": ("libcuda.so.1",)}, "GPUs", "wrong", "1: NVIDIA T4, but libcuda.so.1 cannot be loaded"),
        ({"variables": {"CUDA_VISIBLE_DEVICES": ""}}, "GPUs", "wrong",
         "1: NVIDIA T4, but CUDA_VISIBLE_DEVICES='' hides all of them"),
        ({"compiler": "", "compiler_missing": "install one"}, "emulated GPUs", "wrong", "no C compiler"),
        ({"drawing": "", "drawing_missing": "install one"}, "figures", "wrong", "no Graphviz"),
        ({"drawing": "/usr/bin/dot"}, "figures", "note",
         "drawn by /usr/bin/dot; layouts may differ from pygraphviz's, which are the same everywhere"),
        ({"variables": {"TF_CPP_MIN_LOG_LEVEL": "2"}}, "TF_CPP_MIN_LOG_LEVEL", "note",
         "'2': 1 and above hide TensorFlow's placement log"),
    ],
)  # fmt: skip
def test_what_is_not_well(changes, topic, state, text):
    assert states(**changes) == {topic: (state, text)}


def test_what_is_not_well_has_a_remedy():
    worst = replace(HERE, tensorflow="", gpus=(), compiler="", compiler_missing="install one", drawing="")
    worst = replace(worst, drawing_missing="install one")
    assert all(fact.remedy for fact in judge_computer(worst) if fact.is_wrong)


def test_the_command_looks_at_this_computer(capsys, monkeypatch):
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "3")
    assert main(["doctor"]) in (0, 1)
    out = capsys.readouterr().out
    assert "emulated GPUs" in out
    assert "TF_NUM_INTEROP_THREADS  ok     '3': size of the inter-op pool, unless the program sets it" in out
