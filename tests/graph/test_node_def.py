"""Records of nodes and of what their attributes hold."""

from simplace.graph.node_def import FuncRef


def test_a_function_is_part_of_a_key_where_a_file_has_it_for_a_type() -> None:
    assert len({FuncRef("f", {"T": 1}), FuncRef("f", {"T": 2}), FuncRef("f", {"T": 1}), FuncRef("f")}) == 3
