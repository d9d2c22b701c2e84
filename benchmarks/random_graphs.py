"""Write random GraphDefs of several kinds, without TensorFlow: the same bytes for the same kind, size and seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from simplace.graph import protos

_GPUS = 4
_PIN = "/device:GPU:{}"
_SPELLINGS = ("/gpu:{}", "/GPU:{}", "/device:GPU:{}", "/job:localhost/replica:0/task:0/device:GPU:{}", "/task:0/gpu:{}")
_UNARY = ("Relu", "Tanh", "Neg", "Square", "Identity")
_BINARY = ("AddV2", "Mul", "Sub", "Maximum", "MatMul")
_FLOAT = 1
_SIDE = 64  # of every variable
_PRODUCER = 1882  # TensorFlow 2.16's


class _Writer:
    """Append nodes to a GraphDef; `floats` are the tensors that the next node may read."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.graph = protos.message_class("GraphDef")()
        self.graph.versions.producer = _PRODUCER
        self.floats: list[str] = []
        for _ in range(8):
            self.add_float("Placeholder", dtype=_FLOAT)

    def __len__(self) -> int:
        return len(self.graph.node)

    def add(self, op: str, inputs: Iterable[str] = (), device: str = "", **attrs: Any) -> str:
        """Append a node; its name is that of a scope, as deep as those of users."""
        name = f"scope_{len(self) % 7}/layer_{len(self) // 100}/{op.lower()}_{len(self)}"
        node = self.graph.node.add(name=name, op=op, device=device, input=inputs)
        for key, value in attrs.items():
            _set(node.attr, key, value)
        return name

    def add_float(self, op: str, inputs: Iterable[str] = (), device: str = "", **attrs: Any) -> str:
        """Append a node whose first output later nodes may read."""
        name = self.add(op, inputs, device, **attrs)
        self.floats.append(name)
        return name

    def some(self, count: int, among: int = 0) -> list[str]:
        """Draw tensors: any that are there, or of the last `among`."""
        low = max(0, len(self.floats) - among) if among else 0
        return [self.floats[self.random.randrange(low, len(self.floats))] for _ in range(count)]

    def compute(self, device: str = "", among: int = 0, **attrs: Any) -> str:
        """Append a unary or a binary op."""
        ops, inputs = (_UNARY, 1) if self.random.random() < 0.4 else (_BINARY, 2)
        return self.add_float(self.random.choice(ops), self.some(inputs, among), device, T=_FLOAT, **attrs)

    def pin(self) -> str:
        """Draw one of the GPUs."""
        return _PIN.format(self.random.randrange(_GPUS))


def random_graph(kind: str, count: int, seed: int = 0) -> bytes:
    """Return a GraphDef of at least `count` nodes of one of `KINDS`."""
    writer = _Writer(seed)
    step = KINDS[kind](writer)
    while len(writer) < count:
        step()
    return bytes(writer.graph.SerializeToString(deterministic=True))


def _wired(writer: _Writer) -> Callable[[], None]:
    """Wire nodes at random, half of them pinned to four GPUs, some ordered by control edges."""

    def step() -> None:
        device = writer.pin() if writer.random.random() < 0.5 else ""
        writer.compute(device)
        if writer.random.random() < 0.1:
            writer.add("NoOp", [f"^{name}" for name in dict.fromkeys(writer.some(3))])

    return step


def _fan_in(writer: _Writer) -> Callable[[], None]:
    """Sum up to hundreds of tensors at once, and wait for as many nodes."""

    def step() -> None:
        for _ in range(20):
            writer.compute(writer.pin())
        many = writer.some(writer.random.randint(2, 400), 5000)
        writer.add_float("AddN", many, writer.pin(), T=_FLOAT, N=len(many))
        writer.add("NoOp", [f"^{name}" for name in dict.fromkeys(many)])

    return step


def _fan_out(writer: _Writer) -> Callable[[], None]:
    """Make nearly all nodes read the same eight tensors."""

    def step() -> None:
        hub = writer.random.choice(writer.floats[:8])
        device = writer.pin() if writer.random.random() < 0.7 else ""
        writer.add_float(writer.random.choice(_BINARY), [hub, *writer.some(1, 100)], device, T=_FLOAT)

    return step


def _pins(writer: _Writer) -> Callable[[], None]:
    """Request a device for each node, spelled in all ways."""
    devices = [spelling.format(gpu) for spelling in _SPELLINGS for gpu in range(_GPUS)] + ["/cpu:0", "/job:localhost"]

    def step() -> None:
        writer.compute(writer.random.choice(devices), 1000)

    return step


def _colocation(writer: _Writer) -> Callable[[], None]:
    """Colocate most nodes with one of some hundred others at random, a few with two, which joins their groups."""
    anchors: list[str] = []

    def step() -> None:
        if not anchors or writer.random.random() < 0.1:
            anchors.append(writer.compute(writer.pin(), 1000))
            return
        named = writer.random.sample(anchors[-100:], 2 if len(anchors) > 1 and writer.random.random() < 0.01 else 1)
        writer.compute("", 1000, _class=[f"loc:@{name}".encode() for name in named])

    return step


def _strings(writer: _Writer) -> Callable[[], None]:
    """Go from numbers to strings, which only a CPU holds, and back."""
    texts = [writer.add("AsString", writer.some(1), T=_FLOAT)]

    def step() -> None:
        texts.append(writer.add("AsString", writer.some(1, 1000), T=_FLOAT))
        joined = [writer.random.choice(texts) for _ in range(writer.random.randint(2, 6))]
        texts.append(writer.add("StringJoin", joined, writer.pin(), N=len(joined)))
        writer.add_float("StringToNumber", [writer.random.choice(texts)], out_type=_FLOAT)
        for _ in range(3):
            writer.compute(writer.pin(), 1000)

    return step


def _references(writer: _Writer) -> Callable[[], None]:
    """Keep state in reference variables and in resources, each read and updated by nodes wired at random."""
    shape = [_SIDE, _SIDE]
    add, random = writer.add, writer.random

    def step() -> None:
        inputs = writer.some(6, 1000)
        variable = add(
            "VariableV2", (), writer.pin(), dtype=_FLOAT, shape=shape, shared_name=f"v{len(writer)}".encode()
        )
        add("Assign", [variable, inputs[0]], T=_FLOAT, validate_shape=False)
        writer.add_float("Identity", [variable], T=_FLOAT)
        for value in inputs[1 : random.randint(2, 4)]:
            updated = add(random.choice(("AssignAdd", "AssignSub")), [variable, value], T=_FLOAT)
            writer.add_float("Identity", [updated], T=_FLOAT)
        handle = add("VarHandleOp", (), writer.pin(), dtype=_FLOAT, shape=shape, shared_name=f"r{len(writer)}".encode())
        assigned = add("AssignVariableOp", [handle, inputs[4]], dtype=_FLOAT)
        writer.add_float("ReadVariableOp", [handle, f"^{assigned}"], dtype=_FLOAT)
        add("AssignAddVariableOp", [handle, inputs[5], f"^{assigned}"], dtype=_FLOAT)
        for _ in range(4):
            writer.compute("", 1000)

    return step


def _functions(writer: _Writer) -> Callable[[], None]:
    """Call many small functions, each from a few places; the library grows with the graph."""
    names: list[str] = []

    def step() -> None:
        if len(names) * 20 <= len(writer):
            names.append(_add_function(writer, f"small_{len(names)}"))
        name = writer.random.choice(names[-50:])
        types = {"Tin": [_FLOAT, _FLOAT], "Tout": [_FLOAT]}
        writer.add_float("PartitionedCall", writer.some(2, 1000), writer.pin(), f=name, **types)
        writer.compute("", 1000)

    return step


def _add_function(writer: _Writer, name: str) -> str:
    """Add a function of two inputs and a few ops to the library."""
    args = [{"name": arg, "type": _FLOAT} for arg in ("x", "y")]
    function = writer.graph.library.function.add()
    signature = {"name": name, "input_arg": args, "output_arg": [{"name": "out", "type": _FLOAT}]}
    function.signature.MergeFrom(type(function.signature)(**signature))
    tensors = ["x", "y"]
    for i, op in enumerate(writer.random.choices(_BINARY, k=writer.random.randint(2, 5))):
        node = function.node_def.add(name=f"op_{i}", op=op, input=writer.random.choices(tensors, k=2))
        _set(node.attr, "T", _FLOAT)
        tensors.append(f"op_{i}:{'product' if op == 'MatMul' else 'z'}:0")
    function.ret["out"] = tensors[-1]
    return name


def _set(attrs: Any, name: str, value: Any) -> None:
    """Set an attribute in the form that TensorFlow's ops want under that name."""
    attr = attrs[name]
    match name:
        case "_class":
            attr.list.s.extend(value)
        case "Tin" | "Tout":
            attr.list.type.extend(value)
        case "shape":
            attr.shape.MergeFrom(type(attr.shape)(dim=[{"size": size} for size in value]))
        case "f":
            attr.func.name = value
        case "shared_name":
            attr.s = value
        case "N":
            attr.i = value
        case "validate_shape":
            attr.b = value
        case _:
            attr.type = value


KINDS: Mapping[str, Callable[[_Writer], Callable[[], None]]] = {
    "wired": _wired,
    "fan-in": _fan_in,
    "fan-out": _fan_out,
    "pins": _pins,
    "colocation": _colocation,
    "strings": _strings,
    "references": _references,
    "functions": _functions,
}
