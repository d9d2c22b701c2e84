from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from simplace.explain import reasons as why
from simplace.explain.sentences import SENTENCES, state_reason
from simplace.graph.graph import Graph
from simplace.placement.placement import Placement, is_request_granted
from tests.placement.real import CPU0, GPU0, GPU1, WORLD


@dataclass(frozen=True)
class Case:
    """Record of a graph, the node `n` of which has the reason, and the sentence about it."""

    name: str
    reason: type[why.Reason]
    graph: str
    sentence: str
    default: str = ""
    made_by: str = ""


CASES = [
    Case(
        "argument",
        why.Argument,
        f"n = _Arg() !{GPU0}",
        "The caller's tensor for this argument is on GPU:0, and an argument stays where it is.",
    ),
    Case(
        "argument of a type that is pinned",
        why.Argument,
        f"n = _Arg() [T=int32] !{CPU0}",
        "Arguments of type int32 enter a function in host memory, on CPU:0.",
    ),
    Case(
        "argument that is a resource",
        why.Argument,
        f"n = _Arg() [T=resource] !{GPU0}",
        "This argument is a handle to a resource (such as a variable) that is on GPU:0.",
    ),
    Case(
        "result behind an identity",
        why.FunctionResult,
        f"a = Source() @/GPU:1\nb = Identity(a)\nn = _Retval(b) !{GPU1}",
        "A result goes to the device that its producer a (Source) requested, even if that one cannot run there: GPU:1.",
    ),
    Case(
        "result of an argument",
        why.FunctionResult,
        f"a = _Arg() !{GPU0}\nn = _Retval(a) !{GPU0}",
        "A result goes to the device that was assigned to its producer a (_Arg) before placement: GPU:0.",
    ),
    Case(
        "loop variable",
        why.LoopVariable,
        f"v = _Arg() [T=resource] !{GPU1}\nn = Enter(v) !{GPU1}",
        "The nodes of a loop variable are on the device that its initial value was assigned before placement: GPU:1.",
        made_by="lower While",
    ),
    Case(
        "kept from an earlier run",
        why.KeptFromEarlierRun,
        f"n = Handle() !{GPU1}",
        "An earlier run of the session put this stateful node on GPU:1, and there it stays.",
    ),
    Case("requested", why.Requested, "n = Source() @/GPU:1", "It requested /GPU:1 and got GPU:1."),
    Case(
        "requested where its input is too",
        why.Requested,
        "a = SourceC()\nb = Neg(a) @/CPU:0\nn = Shape(b) @/CPU:0",
        "It requested /CPU:0 and got CPU:0.",
    ),
    Case(
        "soft fallback from a device that is not there",
        why.SoftFallback,
        "n = Source() @/GPU:7",
        "It requested /GPU:7, but no such device exists here; soft placement chose GPU:0 instead.",
    ),
    Case(
        "soft fallback for want of a kernel",
        why.SoftFallback,
        "a = Source()\nn = NegC(a) @/GPU:0",
        "It requested /GPU:0, but NegC has no kernel there for its data types; soft placement chose CPU:0 instead.",
    ),
    Case(
        "soft fallback for want of another's kernel",
        why.SoftFallback,
        'a = SourceC()\nn = Neg(a) [_class=["loc:@a"]] @/GPU:0',
        "It requested /GPU:0, but a (SourceC), with which it is colocated, has no kernel there; "
        "soft placement chose CPU:0 instead.",
    ),
    Case(
        "soft fallback that moves a resource",
        why.SoftFallback,
        "a = Handle() @/CPU:0\nn = ReadG(a)",
        "a (Handle), in its group, requested /CPU:0, but ReadG has no kernel there for its data types; "
        "soft placement chose GPU:0 instead and moved the resource in the group there too.",
    ),
    Case(
        "colocated with a resource",
        why.Colocated,
        "a = Handle() @/GPU:1\nn = Read(a)",
        "Its colocation group goes where the resource a (Handle) is: GPU:1.",
    ),
    Case(
        "colocated with a request",
        why.Colocated,
        "n = Handle()\na = Read(n) @/GPU:1",
        "Its colocation group goes to GPU:1 because a (Read) requested /GPU:1.",
    ),
    Case(
        "colocated with a fixed node",
        why.Colocated,
        f"a = Handle() !{GPU1}\nn = Read(a)",
        "Its colocation group was fixed to GPU:1 by a (Handle).",
    ),
    Case(
        "colocated with the node placed first",
        why.Colocated,
        "a = Handle()\nb = Read(a)\nn = Read(a)",
        "Its colocation group was fixed to GPU:0 by b (Read).",
    ),
    Case(
        "colocated with a node that lacks a kernel",
        why.Colocated,
        "a = Handle()\nn = Read(a)\nb = ReadC(a)",
        "Its colocation group can only run on CPU:0: b (ReadC) has no kernel for the preferred device type.",
    ),
    Case(
        "colocated with what holds strings",
        why.Colocated,
        "a = TensorListReserve() [element_dtype=string]\nb = Source()\n"
        'n = Neg(b) [_class=["loc:@s"]]\ns = TensorListStack(a)',
        "Its colocation group stays on CPU:0: s (TensorListStack) has host-only contents (strings, resources or a "
        "dataset).",
    ),
    Case(
        "colocated by a called function",
        why.Colocated,
        'a = PartitionedCall() [Tin=[], Tout=[resource], f=fn("MadeOnCpu")]\nn = Read(a)',
        "Its colocation group goes where the resource is that a called function returns: CPU:0.",
    ),
    Case(
        "overruled by a resource edge",
        why.Overruled,
        "a = Handle() @/GPU:1\nn = Read(a) @/CPU:0",
        "It requested /CPU:0, but it uses a resource of a (Handle), and the device of a resource takes precedence over "
        "the request of an op that uses it: GPU:1.",
    ),
    Case(
        "overruled by a resource in its class",
        why.Overruled,
        'a = Handle() @/GPU:1\nb = Source()\nn = Neg(b) [_class=["loc:@a"]] @/CPU:0',
        "It requested /CPU:0, but the resource a (Handle) in its colocation group requested /GPU:1, which takes "
        "precedence: GPU:1.",
    ),
    Case(
        "overruled by a fixed node in its class",
        why.Overruled,
        f'a = Source() !{GPU1}\nn = Neg(a) [_class=["loc:@a"]] @/CPU:0',
        "It requested /CPU:0, but a (Source) in its colocation group was assigned to another device before placement: "
        "GPU:1.",
    ),
    Case(
        "overruled by a contradiction",
        why.Overruled,
        'a = Source()\nb = Neg(a) @/GPU:1\nn = Neg(a) [_class=["loc:@b"]] @/CPU:0',
        "It requested /CPU:0, but b (Neg) in its colocation group requested /GPU:1; conflicting requests are "
        "dropped (soft placement), leaving none, and the group is on GPU:0.",
    ),
    Case(
        "overruled by a contradiction of numbers",
        why.Overruled,
        'a = Source()\nb = Neg(a) @/GPU:0\nn = Neg(a) [_class=["loc:@b"]] @/GPU:1',
        "It requested /GPU:1, but b (Neg) in its colocation group requested /GPU:0; conflicting requests are "
        "dropped (soft placement), leaving /device:GPU:*, and the group is on GPU:0.",
    ),
    Case(
        "only kernel",
        why.OnlyKernel,
        "n = SourceC()",
        "No device was requested; GPU has priority but no kernel for it, so it runs on CPU:0.",
    ),
    Case(
        "only kernel, not the default device's",
        why.OnlyKernel,
        "n = SourceC()",
        "No device was requested; GPU:1 has priority but no kernel for it, so it runs on CPU:0.",
        default=GPU1,
    ),
    Case(
        "held on the host",
        why.HeldOnHost,
        "a = TensorListReserve() [element_dtype=string]\nn = TensorListStack(a)",
        "Its variant input has host-only contents (strings or a dataset), so it stays on CPU:0.",
    ),
    Case(
        "default device",
        why.DefaultDevice,
        "a = Source()\nn = Neg(a)",
        "No device was requested; the device of the function's call is used: GPU:1.",
        default=GPU1,
    ),
    Case(
        "preferred",
        why.Preferred,
        "a = Source()\nn = Neg(a)",
        "No device was requested; the highest-priority candidate is used: GPU:0 before GPU:1, CPU:0.",
    ),
    Case(
        "metadata follows its input",
        why.MetadataFollowsInput,
        "a = Source()\nb = NegC(a)\nn = Shape(b)",
        "Shape reads no data, only the description of its input, so it stays with b (NegC).",
    ),
    Case(
        "identity follows its input",
        why.IdentityFollowsInput,
        "a = Source()\nb = NegC(a)\nn = Identity(b)\nc = Neg(n)",
        "An Identity with one input and one consumer stays with its input, b (NegC).",
    ),
    Case(
        "generator follows its consumer",
        why.GeneratorFollowsConsumers,
        "n = Source()\na = NegC(n)",
        "It has no inputs, so it goes where its consumer a (NegC) is: CPU:0.",
    ),
    Case(
        "generator follows its consumers",
        why.GeneratorFollowsConsumers,
        "n = Source()\na = NegC(n)\nb = NegC(n)",
        "It has no inputs, so it goes where its 2 consumers are: CPU:0.",
    ),
]


def placed(case: Case) -> Placement:
    graph = WORLD.graph(case.graph)
    placement = WORLD.place(_made_by(graph, case.made_by), default=case.default)
    assert placement.refusal is None
    return placement


def _made_by(graph: Graph, rewrite: str) -> Graph:
    origins = [origin._replace(made_by=rewrite) if origin.name == "n" else origin for origin in graph.origins]
    return replace(graph, origins=origins)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_reason_and_its_sentence(case: Case) -> None:
    placement = placed(case)

    reason = why.find_reason(placement, placement.graph.ids["n"])

    assert type(reason) is case.reason
    assert reason.device == placement.device(reason.node)
    assert str(state_reason(placement, reason)) == case.sentence


def test_reasons_sentences_and_cases_cover_each_other() -> None:
    assert set(why.ALL_REASONS) == set(SENTENCES) == {case.reason for case in CASES}


def test_rules_are_named_once() -> None:
    rules = [reason.rule for reason in why.ALL_REASONS]
    assert len(set(rules)) == len(rules)
    assert all(rules)


def test_path_is_the_shortest_chain_of_joins() -> None:
    placement = WORLD.place("h = Handle()\na = Read(h)\nb = Read(h)\nc = Both(h, h)")
    a, h, b = (placement.graph.ids[name] for name in "ahb")
    assert [(join.first, join.second) for join in why.find_colocation_path(placement, a, b)] == [(h, a), (h, b)]
    assert why.find_colocation_path(placement, a, a) == ()


def test_kernel_facts_name_the_nearest_data_type() -> None:
    placement = WORLD.place("a = Source()\nn = NegC(a)")
    facts = why.kernel_facts(placement, placement.graph.ids["n"])
    assert (facts.types, facts.lacking) == (("CPU",), (("GPU", None),))


def test_a_request_that_another_device_meets_is_not_granted() -> None:
    placement = WORLD.place("a = SourceC() @/GPU:0\nb = Source() @/GPU:0\nc = Source()")
    assert [is_request_granted(placement, placement.graph.ids[name]) for name in "abc"] == [False, True, True]
