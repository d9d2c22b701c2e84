"""TensorFlow's private modules: the one place they are imported at; `tf_names` lists what is used of them.

A module that this TensorFlow lacks is an empty one here, so that what lacks is found by `describe_missing`, at the
start of a run, and not by an exception. As a program it prints that line, and nothing where no name is missing.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import tensorflow as tf

from simplace.oracle.child import tf_names


def load_module(path: str) -> Any:
    """Return a module below the package `tensorflow`, an empty one where there is none of that name."""
    try:
        return importlib.import_module(f"tensorflow.{path}")
    except ImportError:
        return ModuleType(path)


function_pb2 = load_module("core.framework.function_pb2")
op_def_pb2 = load_module("core.framework.op_def_pb2")
dataset_options_pb2 = load_module("core.framework.dataset_options_pb2")
device_properties_pb2 = load_module("core.protobuf.device_properties_pb2")
config_pb2 = load_module("core.protobuf.config_pb2")
rewriter_config_pb2 = load_module("core.protobuf.rewriter_config_pb2")
xplane_pb2 = load_module("tsl.profiler.protobuf.xplane_pb2")

pywrap_tfe = load_module("python.pywrap_tfe")
pywrap_tf_session = load_module("python.client.pywrap_tf_session")
session = load_module("python.client.session")
server_lib = load_module("python.training.server_lib")
loader_impl = load_module("python.saved_model.loader_impl")
structured_function = load_module("python.data.ops.structured_function")

cancellation = load_module("python.eager.cancellation")
context = load_module("python.eager.context")
core = load_module("python.eager.core")
execute = load_module("python.eager.execute")
record = load_module("python.eager.record")
atomic_function = load_module("python.eager.polymorphic_function.atomic_function")
concrete_function = load_module("python.eager.polymorphic_function.concrete_function")
polymorphic_function = load_module("python.eager.polymorphic_function.polymorphic_function")
tracing_compilation = load_module("python.eager.polymorphic_function.tracing_compilation")

constant_op = load_module("python.framework.constant_op")
function_def_to_graph = load_module("python.framework.function_def_to_graph")
kernels = load_module("python.framework.kernels")
load_library = load_module("python.framework.load_library")
op_def_registry = load_module("python.framework.op_def_registry")
ops = load_module("python.framework.ops")
tensor_util = load_module("python.framework.tensor_util")
cluster = load_module("python.grappler.cluster")
tf_optimizer = load_module("python.grappler.tf_optimizer")
gen_dataset_ops = load_module("python.ops.gen_dataset_ops")
handle_data_util = load_module("python.ops.handle_data_util")
resource_variable_ops = load_module("python.ops.resource_variable_ops")
script_ops = load_module("python.ops.script_ops")
summary_ops = load_module("python.ops.summary_ops_v2")

loader = load_module("python.autograph.pyct.loader")
error_utils = load_module("python.autograph.pyct.error_utils")
origin_info = load_module("python.autograph.pyct.origin_info")
tf_stack = load_module("python.util.tf_stack")
traceback_utils = load_module("python.util.traceback_utils")


def describe_missing(*uses: tf_names.Use) -> str:
    """Return one line on what does not work under this TensorFlow, "" for a version that was seen to have all."""
    version = tf.version.VERSION
    return "" if version in tf_names.SEEN else tf_names.describe_missing(uses, version)


def is_complete(use: tf_names.Use) -> bool:
    """Return whether this TensorFlow has all private names of a use."""
    return tf.version.VERSION in tf_names.SEEN or not tf_names.find_missing(use)


if __name__ == "__main__":
    every = (tf_names.PLACEMENTS, *tf_names.OPTIONAL, tf_names.STEPS, tf_names.GRAPPLER, tf_names.WATCH)
    if missing := tf_names.describe_missing(every, tf.version.VERSION):
        print(missing)
