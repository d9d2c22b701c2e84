"""What mutations start from is sound: each seed is done, with nothing to complain of."""

import json

import pytest

from tests.hostile import cases, seeds
from tests.hostile.cases import ON, Case
from tests.hostile.judge import files_of, run

PLAIN = {"graph.pb": bytes(seeds.graph(seeds.PLAIN).SerializeToString())}


def show(name: str, data: bytes) -> Case:
    return Case("", ("show", name.partition("/")[0], *ON), {name: data})


def read_beside(words: tuple[str, ...], name: str, text: str) -> Case:
    return Case("", ("show", "graph.pb", "--soft", *words), {**PLAIN, name: text.encode()})


SOUND = {
    **{f"graph {i}": show("g.pb", seeds.graph(text).SerializeToString()) for i, text in enumerate(seeds.GRAPHS)},
    "model": show("model/saved_model.pb", seeds.saved_model().SerializeToString()),
    "keras": show("m.keras", cases.zipped(seeds.keras_config().encode())),
    **{f"machine {i}": read_beside(("--devices", "m.toml"), "m.toml", text) for i, text in enumerate(seeds.MACHINES)},
    **{f"kernels {i}": read_beside(("--kernels", "k.toml"), "k.toml", text) for i, text in enumerate(seeds.KERNELS)},
    "costs": Case(
        "", ("schedule", "graph.pb", *ON, "--costs", "c.json"), {**PLAIN, "c.json": json.dumps(seeds.COSTS).encode()}
    ),
    "log": Case("", ("check", "graph.pb", *ON, "--log", "run.log"), {**PLAIN, "run.log": seeds.LOG.encode()}),
    **{text: Case("", ("show", "graph.pb", "--soft", f"--devices={text}"), PLAIN) for text in seeds.DEVICES},
    **{" ".join(words): Case("", tuple(w.format(graph="graph.pb") for w in words), PLAIN) for words in seeds.WORDS},
}


@pytest.mark.parametrize("name", SOUND)
def test_a_seed_is_sound(name):
    with files_of(SOUND[name]):
        assert run(SOUND[name]) == ("done", "")
