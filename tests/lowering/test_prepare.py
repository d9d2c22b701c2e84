"""The whole stage: against TensorFlow's own placer inputs, in one process for all cases."""

from pathlib import Path

import pytest

from simplace.errors import TargetError, UnknownOpError
from simplace.kernels.registry import KernelTable
from simplace.program.status import Refused
from tests.lowering.differential import differences, misplaced, run_cases
from tests.lowering.worlds import GPU1, call_program, function, prepared, same, session_program

CASES = Path(__file__).parent / "cases.py"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return run_cases(CASES, tmp_path_factory.mktemp("tensorflow") / "out.pickle")


@pytest.mark.tf
def test_equals_the_placer_input_of_tensorflow(ran):
    table = KernelTable.shipped()
    wrong = {title(record): found for record in ran["records"] if (found := differences(record, table))}
    assert ran["failures"] == {}
    assert wrong == {}
    written = {line.split("(")[0][4:] for line in CASES.read_text().splitlines() if line.startswith("def case_")}
    assert {record["case"] for record in ran["records"]} == written


@pytest.mark.tf
def test_order_of_edges_leads_to_the_placement_of_tensorflow(ran):
    table = KernelTable.shipped()
    placed = [record for record in ran["records"] if record["placer_output"] is not None]
    wrong = {title(record): found for record in placed if (found := misplaced(record, table))}
    assert len(placed) > 60
    assert wrong == {}


def title(record):
    return f"{record['case']} {record['function'] or 'session'}"


def test_session_graph_stays_as_written():
    graph = prepared(
        session_program("""
            a = Const() @/device:GPU:1 {dtype=float}
            b = Relu(a)
        """)
    )
    assert same(
        graph,
        """
        a = Const() @/device:GPU:1
        b = Relu(a)
        """,
    )
    edges = zip(graph.edge_src, graph.edge_dst, strict=True)
    assert [f"{graph.names[src]}->{graph.names[dst]}" for src, dst in edges] == [
        "a->b",
        "_SOURCE->_SINK",
        "_SOURCE->a",
        "b->_SINK",
    ]


def test_earlier_runs_fix_stateful_nodes_only():
    kept = {"v": GPU1, "c": GPU1, "gone": GPU1}
    text = """
        v = VarHandleOp() {dtype=float, shape=None}
        c = Const() {dtype=float}
    """
    assert same(
        prepared(session_program(text, kept=kept)),
        """
        v = VarHandleOp() !GPU:1
        c = Const()
        """,
    )


def test_unknown_op_names_node_and_table():
    with pytest.raises(UnknownOpError) as error:
        prepared(session_program("a = ZeroOut()"))
    assert str(error.value) == (
        "node 'a' has the op 'ZeroOut', which neither the kernel table "
        f"{KernelTable.shipped().name} nor the graph's library knows; "
        "if it is your own, describe it in a file for --kernels"
    )


def test_unknown_op_names_the_closest():
    with pytest.raises(UnknownOpError, match=r"knows; did you mean Neg.*\? else describe it in a file for --kernels"):
        prepared(session_program("a = Negg()"))


def test_missing_called_function():
    main = function(
        "f(x: float) -> y: float",
        "y = PartitionedCall(x) {f=fn('g'), Tin=(float,), Tout=(float,)}",
        {"y": "y:output:0"},
    )
    with pytest.raises(TargetError, match="node 'y' needs the function 'g', which the graph's library does not have"):
        prepared(call_program(main))


def test_recursion_is_refused():
    call = "y = PartitionedCall(x) {{f=fn('{0}'), Tin=(float,), Tout=(float,)}}"
    f = function("f(x: float) -> y: float", call.format("g"), {"y": "y:output:0"})
    g = function("g(x: float) -> y: float", call.format("f"), {"y": "y:output:0"})
    with pytest.raises(TargetError) as error:
        prepared(call_program(f, g))
    assert str(error.value) == (
        "infinite recursion while inlining functions: 'g' calls 'f' calls 'g' (at node 'y/y/y'); "
        "mark one of the functions with the attribute _noinline"
    )


def test_result_on_an_absent_device():
    f = function("f(x: float) -> y: float", "a = Relu(x) @/device:GPU:7", {"y": "a:activations:0"})
    assert same(
        prepared(call_program(f)),
        """
        x = _Arg() !CPU:0
        a = Relu(x) @/device:GPU:7
        y_RetVal = _Retval(a) !GPU:0
        """,
    )
    with pytest.raises(Refused) as error:
        prepared(call_program(f, soft=False))
    assert str(error.value) == "Unable to find any devices for spec /device:GPU:7"


def test_five_hundred_calls_are_inlined():
    relus = "\n".join(f"a{i} = Relu({f'a{i - 1}:activations:0' if i else 'x'})" for i in range(20))
    leaf = function("leaf(x: float) -> y: float", relus, {"y": "a19:activations:0"})
    calls = "\n".join(
        f"c{i} = PartitionedCall({f'c{i - 1}:output:0' if i else 'x'}) {{f=fn('leaf'), Tin=(float,), Tout=(float,)}}"
        for i in range(500)
    )
    program = call_program(function("f(x: float) -> y: float", calls, {"y": "c499:output:0"}), leaf)
    assert len(prepared(program)) == 2 + 2 + 500 * (20 + 4)


def test_origin_tells_function_call_and_rewrite():
    leaf = function("leaf(x: float) -> y: float", "r = Relu(x)", {"y": "r:activations:0"})
    main = function(
        "f(x: float) -> y: float",
        "c = PartitionedCall(x) {f=fn('leaf'), Tin=(float,), Tout=(float,)}",
        {"y": "c:output:0"},
    )
    graph = prepared(call_program(main, leaf))
    shown = [
        f"{name}: {o.function} {o.name} via {o.via or '-'} by {o.made_by or '-'}"
        for name, o in zip(graph.names[2:], graph.origins[2:], strict=True)
    ]
    assert shown == [
        "x: f x via - by -",
        "y_RetVal: f y_RetVal via - by -",
        "Func/c/input/_0: f c via c by inline",
        "c/r: leaf r via c by -",
        "Func/c/output/_1: f c via c by inline",
        "Func/c/output_control_node/_2: f c via c by inline",
        "c: f c via c by inline",
    ]
