"""Where TensorFlow's source stands in simplace: the file of each step, in the order in which TensorFlow takes them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# (TensorFlow's file, below tensorflow/core/; ours, below simplace/). Ours has the stem of TensorFlow's unless the right
# column says how one file there became several here.
SAME_STEM = (
    ("common_runtime/graph_constructor.cc", "lowering/graph_constructor.py"),
    ("common_runtime/function_body.cc", "lowering/function_body.py"),
    ("common_runtime/lower_functional_ops.cc", "lowering/lower_functional_ops.py"),
    ("common_runtime/lower_if_op.cc", "lowering/lower_if_op.py"),
    ("common_runtime/lower_while_op.cc", "lowering/lower_while_op.py"),
    ("common_runtime/inline_function_utils.cc", "lowering/inline_function_utils.py"),
    ("common_runtime/accumulate_n_optimizer.cc", "lowering/accumulate_n_optimizer.py"),
    ("common_runtime/parallel_concat_optimizer.cc", "lowering/parallel_concat_optimizer.py"),
    (
        "common_runtime/isolate_placer_inspection_required_ops_pass.cc",
        "lowering/isolate_placer_inspection_required_ops_pass.py",
    ),
    ("graph/subgraph.cc", "lowering/subgraph.py"),
    ("data/rewrite_utils.cc", "lowering/rewrite_utils.py"),
    ("grappler/optimizers/data/fusion_utils.cc", "lowering/fusion_utils.py"),
    ("grappler/optimizers/data/split_utils.cc", "lowering/split_utils.py"),
    ("grappler/optimizers/data/make_deterministic.cc", "lowering/make_deterministic.py"),
    ("grappler/utils/topological_sort.cc", "lowering/topological_sort.py"),
    ("grappler/mutable_graph_view.cc", "lowering/mutable_graph_view.py"),
    ("data/captured_function.cc", "placement/captured_function.py"),
    ("kernels/partitioned_function_ops.cc", "placement/partitioned_function_ops.py"),
    ("common_runtime/type_inference.cc", "placement/type_inference.py"),
    ("common_runtime/colocation_graph.cc", "placement/colocation_graph.py"),
    ("common_runtime/inspecting_placer.cc", "placement/inspecting_placer.py"),
    ("common_runtime/placer.cc", "placement/placer.py"),
    ("common_runtime/eager/execute.cc", "placement/eager/execute.py"),
    ("common_runtime/eager/placement_utils.cc", "placement/eager/placement_utils.py"),
    ("common_runtime/replicate_constants_pass.cc", "partition/replicate_constants_pass.py"),
    ("common_runtime/replicate_per_replica_nodes.cc", "partition/replicate_per_replica_nodes.py"),
    ("nccl/nccl_rewrite.cc", "partition/nccl_rewrite.py"),
    ("graph/graph_partition.cc", "partition/graph_partition.py"),
    ("common_runtime/graph_optimizer.cc", "partition/graph_optimizer.py"),
    ("common_runtime/constant_folding.cc", "partition/constant_folding.py"),
    ("graph/optimizer_cse.cc", "partition/optimizer_cse.py"),
    ("common_runtime/propagator_state.cc", "executor/propagator_state.py"),
    ("common_runtime/device_set.cc", "devices/device_set.py"),
    ("../tsl/lib/gtl/flatrep.h", "graph/flatrep.py"),
    ("../tsl/framework/bfc_allocator.cc", "executor/bfc_allocator.py"),
)
OTHER_STEM = (
    ("framework/op_kernel.cc", "kernels/kernel_lookup.py"),
    ("kernels/data/reduce_dataset_op.cc", "kernels/dataset_ops.py"),
    ("grappler/optimizers/data/noop_elimination.cc", "lowering/dataset_fusions.py"),
    ("grappler/optimizers/data/shuffle_and_repeat_fusion.cc", "lowering/dataset_fusions.py"),
    ("grappler/optimizers/data/map_and_batch_fusion.cc", "lowering/dataset_fusions.py"),
    ("grappler/optimizers/data/map_fusion.cc", "lowering/function_fusions.py"),
    ("grappler/optimizers/data/filter_fusion.cc", "lowering/function_fusions.py"),
    ("grappler/optimizers/data/map_and_filter_fusion.cc", "lowering/function_fusions.py"),
    ("kernels/data/shuffle_dataset_op.cc", "oracle/child/dataset_twins.py"),
    ("framework/full_type_util.cc", "kernels/full_type.py"),
    ("common_runtime/eager/context.cc", "placement/default_device.py"),
    ("common_runtime/eager/execute.cc", "placement/default_device.py"),
    ("common_runtime/eager/execute.cc", "placement/eager/wrapped_op.py"),
    ("common_runtime/optimize_function_graph_utils.cc", "lowering/prepare_graph.py"),
    ("common_runtime/optimize_function_graph_utils.cc", "lowering/pin_args_and_rets.py"),
    ("common_runtime/colocation_graph.cc", "placement/candidates.py"),
    ("common_runtime/colocation_graph.cc", "placement/host_only.py"),
    ("common_runtime/input_colocation_exemption_registry.h", "placement/exemptions.py"),
    ("common_runtime/placer.cc", "placement/rules.py"),
    ("common_runtime/placer.cc", "placement/error_messages.py"),
    ("graph/graph_partition.cc", "partition/transfers.py"),
    ("graph/graph_partition.cc", "partition/control_loops.py"),
    ("graph/subgraph.cc", "partition/session_subgraph.py"),
    ("distributed_runtime/master_session.cc", "partition/worker_graphs.py"),
    ("common_runtime/executor.cc", "executor/tensorflow_executor.py"),
    ("common_runtime/executor.cc", "executor/kernel_stats.py"),
    ("common_runtime/gpu/gpu_util.cc", "executor/gpu_streams.py"),
    ("common_runtime/gpu/gpu_device.cc", "costs/gpu_memory.py"),
    ("kernels/resource_variable_ops.cc", "executor/variable_memory.py"),
    ("kernels/training_op_helpers.h", "executor/variable_memory.py"),
)


@pytest.mark.parametrize(("theirs", "ours"), SAME_STEM)
def test_a_file_that_mirrors_one_of_tensorflow_has_its_stem(theirs: str, ours: str) -> None:
    assert Path(theirs).stem == Path(ours).stem


@pytest.mark.parametrize(("theirs", "ours"), [*SAME_STEM, *OTHER_STEM])
def test_a_step_of_tensorflow_is_cited_where_it_is_mirrored(theirs: str, ours: str) -> None:
    text = (ROOT / "simplace" / ours).read_text(encoding="utf-8").replace("\n", " ")
    name = Path(theirs).name
    # Several files of one folder are cited as folder/{one,other}.cc.
    assert name in text or (Path(name).stem in text and f"}}{Path(name).suffix}" in text), f"{ours} cites {theirs}"
