"""Message classes of our own: no TensorFlow needed, none disturbed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from simplace.graph import protos

MODULES = "keras_file, saved_model"


def test_reading_files_needs_no_tensorflow() -> None:
    code = (
        f"from simplace.importers import {MODULES}; from simplace.graph import graph_def, protos\n"
        "from simplace.kernels import extra, full_types, kernel_lookup, op_kernels\n"
        "from simplace.kernels.registry import KernelTable; KernelTable.shipped().kernels('MatMul')\n"
        "import sys; print([name for name in ('tensorflow', 'keras') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_all_messages_are_there() -> None:
    names = (
        "GraphDef FunctionDef OpList KernelList SavedModel MetaGraphDef SavedObjectGraph VariableDef BundleEntryProto"
    )
    assert [protos.message_class(name).DESCRIPTOR.name for name in names.split()] == names.split()


@pytest.mark.tf
def test_tensorflow_keeps_its_own_classes() -> None:
    ours = protos.message_class("NodeDef")
    from tensorflow.core.framework import node_def_pb2

    theirs = node_def_pb2.NodeDef(name="a", op="NoOp")
    assert ours is not node_def_pb2.NodeDef
    assert ours.FromString(theirs.SerializeToString()).name == "a"
