"""Agreement with TensorFlow's log: same names, same devices, same refusal."""

from simplace.compare.compare_placements import Difference, compare_placement, own_lines
from simplace.program.observation import LoggedNode, ObservedRefusal
from tests.worlds import CPU, GPU0, constant, node, place


def world():
    return place(constant("a", (2,), device="/CPU:0"), node("x", "Neg", "a"))


def test_equal_logs_agree():
    found = compare_placement(world(), [LoggedNode("x", "Neg", GPU0), LoggedNode("a", "Const", CPU)])
    assert (str(found), found.holds) == ("2/2 nodes", True)


def test_old_spelling_of_devices_is_the_same_device():
    log = [LoggedNode("x", "Neg", GPU0.replace("/device:GPU", "/gpu")), LoggedNode("a", "Const", CPU)]
    assert compare_placement(world(), log).holds


def test_differences_name_node_and_both_devices():
    found = compare_placement(
        world(), [LoggedNode("x", "Neg", CPU), LoggedNode("a", "Const", CPU), LoggedNode("b", "Abs", CPU)]
    )
    assert (found.same, found.total, found.holds) == (1, 3, False)
    assert found.differences == (Difference("x", "Neg", GPU0, CPU), Difference("b", "Abs", "", CPU))


def test_a_node_that_tensorflow_lacks_is_a_difference():
    assert compare_placement(world(), [LoggedNode("a", "Const", CPU)]).differences == (
        Difference("x", "Neg", GPU0, ""),
    )


def test_refusals_must_have_the_same_code():
    hard = place(constant("a", (2,), device="/GPU:7"), soft=False)
    assert compare_placement(hard, [], ObservedRefusal("INVALID_ARGUMENT", "...")).holds
    assert not compare_placement(hard, [], ObservedRefusal("INTERNAL", "...")).holds
    assert not compare_placement(hard, [LoggedNode("a", "Const", CPU)]).holds
    assert not compare_placement(world(), [], ObservedRefusal("INVALID_ARGUMENT", "...")).holds


def test_a_graph_is_found_in_the_log_of_a_whole_program():
    placement = world()
    own = [LoggedNode("x", "Neg", GPU0), LoggedNode("a", "Const", CPU)]
    eager = [LoggedNode("a", "_Arg", CPU), LoggedNode("x", "Neg", CPU), LoggedNode("x_RetVal", "_Retval", CPU)]
    assert own_lines(placement, [*eager, *own, *eager]) == own


def test_another_order_is_matched_by_name():
    log = [LoggedNode("a", "Const", CPU), LoggedNode("other", "Neg", CPU), LoggedNode("x", "Neg", GPU0)]
    assert own_lines(world(), log) == [log[0], log[2]]
