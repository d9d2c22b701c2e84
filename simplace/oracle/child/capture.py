"""Write down what the installed TensorFlow registers: its ops, its kernels, its message types.

Run `python -m simplace.oracle.child.capture PATH` for a kernel table, add `--protos` for the message types.
"""

from __future__ import annotations

import gzip
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import descriptor_pb2

from simplace.kernels import table_file
from simplace.oracle.child.tf_private import kernels, load_module, op_def_pb2, pywrap_tf_session

MESSAGE_FILES = (
    "core.framework.graph_pb2",
    "core.framework.kernel_def_pb2",
    "core.framework.variable_pb2",
    "core.protobuf.saved_model_pb2",
    "core.protobuf.saved_object_graph_pb2",
    "core.protobuf.trackable_object_graph_pb2",
    "core.protobuf.tensor_bundle_pb2",
)


def write_protos(path: str | Path) -> None:
    """Write TensorFlow's file descriptors, dependencies first, as a gzipped `FileDescriptorSet`."""
    descriptors = descriptor_pb2.FileDescriptorSet()
    seen: set[str] = set()

    def add(file: Any) -> None:
        if file.name in seen:
            return
        seen.add(file.name)
        for needed in file.dependencies:
            add(needed)
        file.CopyToProto(descriptors.file.add())

    for module in MESSAGE_FILES:
        add(load_module(module).DESCRIPTOR)
    Path(path).write_bytes(gzip.compress(descriptors.SerializeToString(), mtime=0))


def write_kernel_table(path: str | Path) -> None:
    """Write the kernel table of the TensorFlow that is imported, as it is at this moment; takes about 0.1 s.

    Before the first op has run, the kernels of the symbolic device types (XLA_CPU_JIT ...) are not registered yet.
    Placement never looks at them; only TensorFlow's lists of registered kernels show them.
    """
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    bare = op_def_pb2.OpList(op=sorted(map(_without_documentation, ops.op), key=lambda op: op.name))
    about = _describe_build(tf.version.VERSION, tf.version.GIT_VERSION, tf.sysconfig.get_build_info())
    about["graph_def_version"] = tf.version.GRAPH_DEF_VERSION
    registered = kernels.get_all_registered_kernels().SerializeToString(deterministic=True)
    table_file.write_table_file(path, about, bare.SerializeToString(deterministic=True), registered)


def main(arguments: list[str]) -> int:
    """Write a kernel table, or with `--protos` the message types, to the path that is given."""
    paths = [argument for argument in arguments if argument != "--protos"]
    if len(paths) != 1:
        print("usage: python -m simplace.oracle.child.capture [--protos] PATH", file=sys.stderr)
        return 2
    if "--protos" in arguments:
        write_protos(paths[0])
        return 0
    _run_an_op()
    write_kernel_table(paths[0])
    return 0


def _run_an_op() -> None:
    """Make TensorFlow register XLA's symbolic kernels, as any program does with its first op."""
    tf.add(tf.constant(1.0), 1.0)


def _describe_build(version: str, git_version: str, build: Mapping[str, Any]) -> dict[str, Any]:
    system = {"Darwin": "macOS"}.get(platform.system(), platform.system())
    kinds = [kind for kind, on in (("CUDA", "is_cuda_build"), ("ROCm", "is_rocm_build")) if build.get(on)]
    with_what = "with " + " and ".join(kinds) if kinds else "without GPU kernels"
    return {
        "name": f"{version} (captured from a {system} build {with_what})",
        "version": version,
        "git_version": git_version,
        "system": system,
        "machine": platform.machine(),
        "is_cuda_build": bool(build.get("is_cuda_build")),
    }


def _without_documentation(op: Any) -> Any:
    op.summary = op.description = ""
    for part in (*op.input_arg, *op.output_arg, *op.attr):
        part.description = ""
    return op


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
