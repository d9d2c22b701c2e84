"""Results for pages: small placed graphs, one of them with names that try to break out of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simplace.compare.compare_placements import compare_placement
from simplace.graph.dtypes import DataType
from simplace.pipeline import EagerPlacer
from simplace.placement.eager.eager_placement import PlacedEager, PlacedOp
from simplace.placement.placement import Placement
from simplace.program.eager_op import EagerInput, EagerOp
from simplace.program.observation import LoggedNode
from simplace.program.program import NodeNotes
from simplace.result import Placed, Result
from tests.views import graphs
from tests.worlds import CPU, constant, node, place, shipped

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<!--<script>",
    '"><img src=x onerror="window.hacked = 3">',
    "'onmouseover='window.hacked=4",
    "a\nb\ttab\rreturn",
    "\u2028line\u2029paragraph",
    "\u202eright-to-left",
    "日本語/モデル/層",
    "عربى",
    "$data ${title} {{x}}",
    "&lt;b&gt;&#x41;",
    "\x01f5\x02 and \x01n",
    "/starts/with/slash",
    "ends/with/slash/",
    "a//b",
    "javascript:window.hacked=5",
    "__proto__",
    "constructor/toString",
    "long/" + "x" * 10_000,
    "deep" + "/a" * 3_000,
)


def result(*placements: Placement, target: str = "model.py") -> Result:
    placed = tuple(Placed(one) for one in placements)
    return Result(target, "2.21.0", shipped().name, placements[0].devices, placed, unchecked="simplace check asks it")


def agreed(placement: Placement, *, moved: str = "") -> Result:
    """Compare a placement with a log that says the same but for the node `moved`, which it has on the CPU."""
    log = [LoggedNode(n.name, n.op, CPU if n.name == moved else n.device) for n in placement.nodes]
    placed = Placed(placement, compare_placement(placement, log))
    return Result("model.py", "2.21.0", shipped().name, placement.devices, (placed,))


def with_eager(given: Result, line: str = "model.py:1") -> Result:
    """Add ops that ran on the CPU outside of functions, all by one line."""
    placer, ran = EagerPlacer(given.devices, shipped()), []
    for op in ("Relu", "Softplus", "Reciprocal"):
        one = EagerOp(op, line, CPU, True, {"T": DataType.DT_FLOAT}, (EagerInput(DataType.DT_FLOAT, CPU),))
        ran.append(PlacedOp(f"{line} {op}", placer.place(one), 1, (), ()))
    return replace(given, eager=PlacedEager(tuple(ran), given.devices, shipped()))


def towers() -> Result:
    return agreed(graphs.towers(2))


def hostile(names: Sequence[str] = HOSTILE) -> Result:
    """Place a chain whose names, lines and devices try to break out of the page."""
    lines, before = [], ""
    for name in names:
        lines.append(
            node(_escaped(name), "Relu", _escaped(before)) if before else constant(_escaped(name), (4,), "/cpu:0")
        )
        before = name
    notes = {name: NodeNotes(at=f"{name}.py:1", device_at=name) for name in names}
    return result(place(*lines, name=names[1], notes=notes), target=names[3])


def _escaped(name: str) -> str:
    """Escape a name inside the quotes of GraphDef text."""
    return "".join(c if c.isalnum() or c in "/ _-" else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in name)
