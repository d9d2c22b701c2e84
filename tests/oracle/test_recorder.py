"""What a child writes down while several threads of the program run."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from simplace.oracle import protocol
from simplace.oracle.child.recorder import Recorder


def test_each_program_has_its_own_graph_and_number(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    graphs = [b"%d " % i * 10_000 for i in range(100)]
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda graph: recorder.program(graph, first=graph[:3].decode()), graphs))
    assert sorted(numbers) == list(range(100))
    told = [json.loads(line) for line in (tmp_path / protocol.EVENTS).read_text().splitlines()]
    assert [event["graph"] for event in told] == [f"graph_{i}.pb" for i in range(100)]
    assert [(tmp_path / event["graph"]).read_bytes()[:3].decode() for event in told] == [e["first"] for e in told]
    assert [told[number]["first"] for number in numbers] == [graph[:3].decode() for graph in graphs]
