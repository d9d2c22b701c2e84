"""Calls replaced by the bodies of their functions."""

from tests.lowering.worlds import call_program, function, prepared, same, session_program

G = function(
    "g(x: float) -> y: float",
    """
    c = Const() {dtype=float}
    s = AddV2(x, c:output:0) @/device:CPU:0 {_class=(b'loc:@x',)}
    n = NoOp(^s)
    r = Relu(s:z:0, ^n) {_class=(b'loc:@s', b'loc:@elsewhere')}
    """,
    {"y": "r:activations:0"},
    control_ret=("n",),
)


def test_multi_device_call_keeps_devices_of_the_body():
    f = function(
        "f(x: float) -> y: float",
        """
        a = NoOp()
        k = PartitionedCall(x, ^a) @/job:localhost/device:GPU:1 {f=fn('g'), Tin=(float,), Tout=(float,)}
        z = Neg(k:output:0, ^k)
        """,
        {"y": "z:y:0"},
    )
    assert same(
        prepared(call_program(f, G)),
        """
        x = _Arg() !CPU:0
        a = NoOp()
        z = Neg(Func/k/output/_2, ^Func/k/output_control_node/_3)
        y_RetVal = _Retval(z)
        Func/k/input_control_node/_0 = NoOp(^a) @/job:localhost/device:GPU:1
        Func/k/input/_1 = Identity(x, ^Func/k/input_control_node/_0) @CPU:0 [loc:@x]
        k/c = Const(^Func/k/input_control_node/_0) @/job:localhost/device:GPU:1
        k/s = AddV2(Func/k/input/_1, k/c) @/job:localhost/device:CPU:0 [loc:@Func/k/input/_1]
        k/n = NoOp(^k/s) @/job:localhost/device:GPU:1
        k/r = Relu(k/s, ^k/n) @/job:localhost/device:GPU:1 [loc:@k/s, loc:@elsewhere]
        Func/k/output/_2 = Identity(k/r) [loc:@k/r]
        Func/k/output_control_node/_3 = NoOp(^k/n) @/job:localhost/device:GPU:1
        k = NoOp(^Func/k/output_control_node/_3) @/job:localhost/device:GPU:1
        """,
    )


def test_call_by_name_gives_its_device_to_all():
    f = function("f(x: float) -> y: float", "k = g(x) @/device:GPU:1", {"y": "k:y:0"})
    assert same(
        prepared(call_program(f, G)),
        """
        x = _Arg() !CPU:0
        y_RetVal = _Retval(Func/k/output/_1) !GPU:1
        Func/k/input/_0 = Identity(x) @/device:GPU:1
        k/c = Const() @/device:GPU:1
        k/s = AddV2(Func/k/input/_0, k/c) @/device:GPU:1 [loc:@Func/k/input/_0]
        k/n = NoOp(^k/s) @/device:GPU:1
        k/r = Relu(k/s, ^k/n) @/device:GPU:1 [loc:@k/s, loc:@elsewhere]
        Func/k/output/_1 = Identity(k/r) @/device:GPU:1
        Func/k/output_control_node/_2 = NoOp(^Func/k/output/_1) @/device:GPU:1
        k = NoOp(^Func/k/output_control_node/_2) @/device:GPU:1
        """,
    )


def test_call_without_inputs_hangs_on_the_source():
    g = function("g() -> y: float", "c = Const() {dtype=float}", {"y": "c:output:0"})
    f = function("f() -> y: float", "k = PartitionedCall() {f=fn('g'), Tin=(), Tout=(float,)}", {"y": "k:output:0"})
    assert same(
        prepared(call_program(f, g)),
        """
        y_RetVal = _Retval(Func/k/output/_1)
        Func/k/input_control_node/_0 = NoOp()
        k/c = Const(^Func/k/input_control_node/_0)
        Func/k/output/_1 = Identity(k/c) [loc:@k/c]
        Func/k/output_control_node/_2 = NoOp(^Func/k/input_control_node/_0)
        k = NoOp(^Func/k/output_control_node/_2)
        """,
    )


def test_session_leaves_calls_alone():
    assert same(
        prepared(
            session_program(
                "x = Const() {dtype=float}\nk = PartitionedCall(x) {f=fn('g'), Tin=(float,), Tout=(float,)}", G
            )
        ),
        """
        x = Const()
        k = PartitionedCall(x)
        """,
    )


def test_calls_that_must_stay():
    kept = function("g(x: float) -> y: float", "", {"y": "x"}, attrs={"_noinline": True})
    group = function("h(x: float) -> y: float", "", {"y": "x"}, attrs={"api_implements": b"gelu"})
    f = function(
        "f(x: float) -> y: float",
        """
        a = PartitionedCall(x) {f=fn('g'), Tin=(float,), Tout=(float,)}
        b = PartitionedCall(a:output:0) {f=fn('h'), Tin=(float,), Tout=(float,)}
        c = PartitionedCall(b:output:0) {f=fn('g'), Tin=(float,), Tout=(float,), _XlaMustCompile=True}
        """,
        {"y": "c:output:0"},
    )
    assert same(
        prepared(call_program(f, kept, group)),
        """
        x = _Arg() !CPU:0
        a = PartitionedCall(x)
        b = PartitionedCall(a)
        c = PartitionedCall(b)
        y_RetVal = _Retval(c)
        """,
    )


def test_template_takes_attributes_of_the_call():
    g = function("g(x: float) -> y: float", "r = Cast(x) {SrcT='A', DstT='B', T='A'}", {"y": "r:y:0"})
    f = function(
        "f(x: float) -> y: float",
        "k = PartitionedCall(x) {f=fn('g'), Tin=(float,), Tout=(float,), A=float, B=float}",
        {"y": "k:output:0"},
    )
    assert same(
        prepared(call_program(f, g)),
        """
        x = _Arg() !CPU:0
        y_RetVal = _Retval(Func/k/output/_1)
        Func/k/input/_0 = Identity(x) @CPU:0 [loc:@x]
        k/r = Cast(Func/k/input/_0)
        Func/k/output/_1 = Identity(k/r) [loc:@k/r]
        Func/k/output_control_node/_2 = NoOp()
        k = NoOp(^Func/k/output_control_node/_2)
        """,
    )
