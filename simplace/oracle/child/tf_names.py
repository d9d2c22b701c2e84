"""The private names of TensorFlow that simplace relies on, what for, and the versions that were seen to have them.

A name is "module:attribute" below the package `tensorflow`; an attribute of a class may be set by its methods, and "|"
separates the names that one thing has in different versions. No other private name may be used
(tests/oracle/test_tf_names.py). To admit a version, run `python -m simplace.oracle.child.tf_private` under it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

SEEN = ("2.16.2", "2.17.1", "2.18.1", "2.19.1", "2.20.0", "2.21.0")


@dataclass(frozen=True, slots=True)
class Use:
    """Record of a part of simplace, and the private names without which it does not work."""

    what: str
    names: tuple[str, ...]


def _list_names(table: str) -> tuple[str, ...]:
    """Return the names of a table whose lines are a module and its attributes."""
    rows = (line.split() for line in table.splitlines() if line.strip())
    return tuple(f"{module}:{name}" for module, *names in rows for name in names)


PLACEMENTS = Use("emulated devices and the observation of functions", _list_names("""
    core.framework.dataset_options_pb2  OptimizationOptions Options
    core.framework.function_pb2   FunctionDef
    core.framework.op_def_pb2     OpList
    core.protobuf.config_pb2      CallableOptions
    python.client.pywrap_tf_session  TF_GetAllOpList TF_GetBuffer
    python.eager.cancellation     CancellationManager CancellationManager._impl context
    python.eager.context          Context.__init__ Context._context_devices Context._context_handle Context._handle
    python.eager.context          Context._initialize_physical_devices Context._soft_device_placement
    python.eager.context          Context._compute_pluggable_device_options|Context._compute_gpu_options
    python.eager.context          Context._memory_growth_map
    python.eager.context          Context._virtual_device_map Context._visible_device_list Context.log_device_placement
    python.eager.context          Context.function_call_options Context.remove_function
    python.eager.context          Context.is_custom_device Context.register_custom_device
    python.eager.context          Context.soft_device_placement anonymous_name context ensure_initialized
    python.eager.core             _FallbackException _NotOkStatusException
    python.eager.polymorphic_function.atomic_function       from_func_graph
    python.eager.polymorphic_function.polymorphic_function  Function Function.__init__ Function._jit_compile
    python.eager.polymorphic_function.tracing_compilation   call_function
    python.eager.record           stop_recording
    python.framework.dtypes       DType._type_enum
    python.framework.errors_impl  OpError._message
    python.framework.function_def_to_graph  function_def_to_graph_def
    python.framework.kernels      get_all_registered_kernels get_registered_kernels_for_op
    python.framework.load_library load_pluggable_device_library
    python.framework.op_def_registry  get
    python.framework.ops          EagerTensor EagerTensor._copy_to_device EagerTensor._handle_data EagerTensor._id
    python.framework.ops          EagerTensor._summarize_value
    python.framework.ops          EagerTensor._datatype_enum EagerTensor._num_elements EagerTensor.is_packed
    python.framework.ops          pack_eager_tensors
    python.framework.tensor_util  try_evaluate_constant
    python.ops.handle_data_util   get_resource_handle_data
    python.ops.resource_variable_ops  ResourceVariable
    python.pywrap_tfe             TFE_FromDlpackCapsule TFE_ToDlpackCapsule
    python.pywrap_tfe             TFE_ContextGetExecutorForThread TFE_ContextSetExecutorForThread TFE_DeleteExecutor
    python.pywrap_tfe             TFE_ExecutorIsAsync TFE_NewExecutor
    python.pywrap_tfe             TFE_Py_Execute TFE_Py_ExecuteCancelable TFE_Py_FastPathExecute
    python.saved_model.loader_impl  parse_saved_model
    python.util.tf_stack          extract_stack
"""))  # fmt: skip
EAGER_OPS = Use("the placement of eager ops", _list_names("""
    python.eager.execute          must_record_gradient record_gradient
    python.framework.constant_op  convert_to_eager_tensor
    python.ops.script_ops         FuncRegistry.__call__
"""))  # fmt: skip
SESSIONS = Use("the observation of sessions", _list_names("""
    python.client.pywrap_tf_session  TF_DeleteBuffer TF_NewBufferFromString TF_OperationName TF_SessionMakeCallable
    python.client.pywrap_tf_session  TF_SessionPRunSetup_wrapper TF_SessionReleaseCallable
    python.client.session         BaseSession.__init__ BaseSession._call_tf_sessionprun BaseSession._call_tf_sessionrun
    python.client.session         BaseSession._config BaseSession._extend_graph BaseSession._make_callable_from_options
    python.client.session         BaseSession._session BaseSession.close BaseSession._Callable.__init__
    python.client.session         BaseSession._Callable.__call__ BaseSession._Callable._session
    python.framework.ops          Operation._add_control_input Operation._c_op
    python.framework.ops          SymbolicTensor._as_tf_output|Tensor._as_tf_output
"""))  # fmt: skip
CLUSTERS = Use("the emulation of clusters", _list_names("""
    python.eager.context          Context._initialized Context._server_def Context.enable_collective_ops
    python.eager.context          Context.ensure_initialized Context.set_server_def Context.update_server_def
    python.training.server_lib    Server Server.join _make_server_def
"""))  # fmt: skip
SUBGRAPHS = Use("the comparison of partitions", _list_names("""
    python.eager.context          Context.set_optimizer_experimental_options
    python.eager.polymorphic_function.atomic_function  make_call_op_in_graph
"""))  # fmt: skip
DEFINITIONS = Use("the list of functions that no call reached", _list_names("""
    python.eager.polymorphic_function.polymorphic_function  Function.__init__ Function._call Function._function_cache
    python.eager.polymorphic_function.polymorphic_function  Function._get_key_for_call_stats
    python.eager.polymorphic_function.polymorphic_function  Function.get_concrete_function
    python.eager.polymorphic_function.polymorphic_function  Function._run_functions_eagerly
"""))  # fmt: skip
LINES = Use("source lines of device scopes and of functions converted by AutoGraph", _list_names("""
    python.autograph.pyct.error_utils  _stack_trace_inside_mapped_code
    python.autograph.pyct.loader  tempfile
    python.autograph.pyct.origin_info  create_source_map
    python.framework.ops          Graph._add_device_to_stack Graph._device_function_stack
    python.framework.ops          Operation._device_code_locations
    python.framework.traceable_stack  TraceableStack._stack
    python.util.tf_stack          SentinelFilter.__init__ SentinelFilter.get_filtered_filenames SentinelFilter.update
    python.util.tf_stack          _source_filter_stacks
"""))  # fmt: skip
LOWERING = Use("what XLA refuses to compile", _list_names("""
    python.eager.context          Context.get_compiler_ir
"""))  # fmt: skip
FACTS = Use("some findings of simplace doctor", _list_names("""
    python.client.session         BaseSession.__init__
    python.data.ops.structured_function  StructuredFunctionWrapper.__init__ StructuredFunctionWrapper._function
    python.eager.context          Context.log_device_placement _EagerDeviceContext.__enter__ _EagerDeviceContext._ctx
    python.eager.context          Context.ensure_initialized Context.inter_op_parallelism_threads
    python.eager.context          Context.intra_op_parallelism_threads Context.set_logical_device_configuration
    python.eager.context          Context.set_memory_growth Context.set_visible_devices
    python.framework.ops          Graph._colocation_stack Graph._create_op_helper Graph._device_function_stack
    python.framework.ops          Graph.colocate_with _UserDeviceSpec._device_name_or_function
    python.framework.device_spec  DeviceSpecV2.to_string
"""))  # fmt: skip
DATASETS = Use("the names of functions of datasets", _list_names("""
    python.data.ops.structured_function  StructuredFunctionWrapper.__init__ StructuredFunctionWrapper._function
    python.ops.gen_dataset_ops    generator_dataset
"""))  # fmt: skip
STEPS = Use("measurements", _list_names("""
    core.protobuf.rewriter_config_pb2  RewriterConfig
    python.client.session         BaseSession BaseSession.run
    python.eager.context          Context.enable_collective_ops Context.set_server_def
    python.eager.polymorphic_function.concrete_function  ConcreteFunction._call_flat
    python.framework.ops          EagerTensor._handle_data Operation._control_outputs
    python.grappler.tf_optimizer  OptimizeGraph
    python.training.server_lib    _make_server_def
    tsl.profiler.protobuf.xplane_pb2   XSpace
"""))  # fmt: skip
GRAPPLER = Use("graphs as Grappler makes them", _list_names("""
    core.protobuf.device_properties_pb2  DeviceProperties NamedDevice
    python.grappler.cluster       Cluster
    python.grappler.tf_optimizer  OptimizeGraph
"""))  # fmt: skip
WATCH = Use("watching the user's own process", _list_names("""
    core.protobuf.config_pb2      RunMetadata RunOptions
    python.client.pywrap_tf_session  TF_DeleteBuffer TF_GetBuffer TF_NewBuffer TF_NewBufferFromString TF_OperationName
    python.client.session         BaseSession._call_tf_sessionrun BaseSession._config BaseSession._target
    python.eager.context          Context.disable_graph_collection Context.enable_graph_collection
    python.eager.context          Context.export_run_metadata Context.is_async
    python.eager.polymorphic_function.atomic_function       AtomicFunction AtomicFunction._cached_graph
    python.eager.polymorphic_function.atomic_function       AtomicFunction.children
    python.framework.ops          Graph._add_device_to_stack uid
    python.ops.summary_ops_v2     _current_trace_context
"""))  # fmt: skip
# A run goes on without these.
OPTIONAL = (EAGER_OPS, SESSIONS, CLUSTERS, SUBGRAPHS, DEFINITIONS, LINES, LOWERING, FACTS, DATASETS)
WATCHING = (PLACEMENTS, EAGER_OPS, LINES, WATCH)  # all that `simplace.watch` needs


def find_missing(use: Use, package: str = "tensorflow") -> list[str]:
    """Return the names of a use that the installed package lacks."""
    return [name for name in use.names if not any(_exists(f"{package}.{each}") for each in _alternatives(name))]


def describe_missing(uses: Iterable[Use], version: str, package: str = "tensorflow") -> str:
    """Return one line on what does not work under a version for want of private names, "" where all are there."""
    found = [(use.what, find_missing(use, package)) for use in uses]
    parts = [f"{what} (for want of {', '.join(missing)})" for what, missing in found if missing]
    if not parts:
        return ""
    return (
        f"TensorFlow {version} is not among the versions that simplace is tested with ({SEEN[0]} to {SEEN[-1]}), and "
        f"lacks private names; what does not work: {'; '.join(parts)}."
    )


def _alternatives(name: str) -> Iterator[str]:
    module, _, attributes = name.partition(":")
    return (f"{module}:{each}" for each in attributes.split("|"))


def _exists(name: str) -> bool:
    module, _, attributes = name.partition(":")
    try:
        owner: Any = importlib.import_module(module)
    except ImportError:
        return False
    *path, last = attributes.split(".")
    for each in path:
        owner = getattr(owner, each, None)
    return owner is not None and (hasattr(owner, last) or last in _attributes_of_methods(owner))


def _attributes_of_methods(owner: Any) -> frozenset[str]:
    """Return the names of attributes that the methods of a class set or read."""
    members = (each for base in getattr(owner, "__mro__", ()) for each in vars(base).values())
    methods = (member.fget if isinstance(member, property) else member for member in members)
    return frozenset(name for one in methods if isinstance(one, FunctionType) for name in one.__code__.co_names)
