"""Make the inputs: case i of a seed is the same in every run."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field

from simplace.graph import protos
from tests.hostile import mutations, seeds

ON = ("--devices", "cpu:1,gpu:2", "--soft")


@dataclass(frozen=True)
class Case:
    """Record of a command line and the files that it reads, by name; `graph` is the one that TensorFlow may import."""

    kind: str
    words: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    graph: str = ""


def case(seed: int, number: int) -> Case:
    """Make case `number` of a seed."""
    rng = random.Random(f"{seed}/{number}")
    return rng.choice(_MAKERS)(rng)


def _mutated(rng: random.Random) -> bytes:
    message = seeds.graph(rng.choice(seeds.GRAPHS))
    mutations.mutate_message(message, rng)
    return bytes(message.SerializeToString(deterministic=True))


_COMMANDS = (
    *[("show", "--table")] * 3, ("show", "--json", "out.json"), ("show", "-o", "out.dot"), ("schedule",), ("doctor",),
    ("schedule", "--json", "out.json", "--trace", "trace.json", "--batch", "3"), ("diff", "--pin", "*=CPU"),
    ("report", "-o", "out.html"), ("schedule", "--executor", "textbook", "--costs", "flat"),
)  # fmt: skip


def _graph(rng: random.Random) -> Case:
    command, *options = rng.choice(_COMMANDS)
    return Case("GraphDef, messages", (command, "graph.pb", *ON, *options), {"graph.pb": _mutated(rng)}, "graph.pb")


def _graph_bytes(rng: random.Random) -> Case:
    data = seeds.graph(rng.choice(seeds.GRAPHS)).SerializeToString(deterministic=True)
    return Case(
        "GraphDef, bytes", ("show", "graph.pb", *ON), {"graph.pb": mutations.mutate_bytes(data, rng)}, "graph.pb"
    )


def _graph_text(rng: random.Random) -> Case:
    data = mutations.mutate_bytes(rng.choice(seeds.GRAPHS).encode(), rng)
    return Case("GraphDef, text", ("show", "graph.pbtxt", *ON), {"graph.pbtxt": data})


def _graph_flood(rng: random.Random) -> Case:
    if rng.random() < 0.3:
        text = mutations.flood_text(rng.choice(seeds.GRAPHS), rng)
        return Case("GraphDef, floods", ("show", "graph.pbtxt", *ON), {"graph.pbtxt": text.encode()})
    data = seeds.graph(rng.choice(seeds.GRAPHS)).SerializeToString(deterministic=True)
    data += mutations.flood_message(protos.message_class("GraphDef").DESCRIPTOR, rng)
    return Case("GraphDef, floods", ("show", "graph.pb", *ON), {"graph.pb": data})


def _saved_model_flood(rng: random.Random) -> Case:
    data = seeds.saved_model().SerializeToString(deterministic=True)
    data += mutations.flood_message(protos.message_class("SavedModel").DESCRIPTOR, rng)
    return Case("SavedModel, floods", ("show", "model", *ON), {"model/saved_model.pb": data})


def _saved_model(rng: random.Random) -> Case:
    model = seeds.saved_model()
    mutations.mutate_message(model, rng)
    return Case(
        "SavedModel, messages",
        ("show", "model", *ON),
        {"model/saved_model.pb": model.SerializeToString(deterministic=True)},
    )


def _saved_model_bytes(rng: random.Random) -> Case:
    data = mutations.mutate_bytes(seeds.saved_model().SerializeToString(deterministic=True), rng)
    return Case("SavedModel, bytes", ("show", "model", *ON), {"model/saved_model.pb": data})


def _keras(rng: random.Random) -> Case:
    config = json.dumps(mutations.mutate_json(json.loads(seeds.keras_config()), rng))
    return Case(".keras, JSON", ("show", "model.keras", *ON), {"model.keras": zipped(config.encode())})


def _keras_bytes(rng: random.Random) -> Case:
    config = seeds.keras_config().encode()
    if rng.random() < 0.5:
        data = zipped(mutations.mutate_bytes(config, rng))
    else:
        data = mutations.mutate_bytes(zipped(config), rng)
    return Case(".keras, bytes", ("show", "model.keras", *ON), {"model.keras": data})


def zipped(config: bytes) -> bytes:
    """Put a configuration into a .keras file."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("config.json"), config, zipfile.ZIP_DEFLATED)  # without the time of day
    return made.getvalue()


def _sound() -> dict[str, bytes]:
    return {"graph.pb": bytes(seeds.graph(seeds.PLAIN).SerializeToString(deterministic=True))}


def _mutate_toml(rng: random.Random) -> Callable[[str, random.Random], str]:
    return rng.choice((mutations.mutate_text, mutations.mutate_values, mutations.mutate_values))


def _machine(rng: random.Random) -> Case:
    text = _mutate_toml(rng)(rng.choice(seeds.MACHINES), rng)
    files = {**_sound(), "machine.toml": text.encode(errors="replace")}
    return Case("machine file", ("show", "graph.pb", "--soft", "--devices", "machine.toml"), files)


def _kernels(rng: random.Random) -> Case:
    text = _mutate_toml(rng)(rng.choice(seeds.KERNELS), rng)
    files = {**_sound(), "kernels.toml": text.encode(errors="replace")}
    return Case("kernels file", ("show", "graph.pb", *ON, "--kernels", "kernels.toml"), files)


def _costs(rng: random.Random) -> Case:
    files = {**_sound(), "costs.json": json.dumps(mutations.mutate_json(seeds.COSTS, rng)).encode()}
    return Case("costs file", ("schedule", "graph.pb", *ON, "--costs", "costs.json"), files)


def _log(rng: random.Random) -> Case:
    files = {**_sound(), "run.log": mutations.mutate_text(seeds.LOG, rng).encode(errors="replace")}
    return Case("placement log", ("check", "graph.pb", *ON, "--log", "run.log"), files)


def _devices(rng: random.Random) -> Case:
    text = mutations.mutate_text(rng.choice(seeds.DEVICES), rng)
    return Case("device list", ("show", "graph.pb", "--soft", f"--devices={text}"), _sound())


def _words(rng: random.Random) -> Case:
    words = [word.format(graph="graph.pb") for word in rng.choice(seeds.WORDS)]
    return Case("command line", tuple(mutations.mutate_words(words, rng)), _sound())


_MAKERS: tuple[Callable[[random.Random], Case], ...] = (
    *[_graph] * 8, _graph_bytes, _graph_bytes, _graph_text, _graph_flood, _saved_model, _saved_model,
    _saved_model_flood, _saved_model_bytes, _keras,
    _keras, _keras_bytes, _machine, _kernels, _costs, _log, _devices, _words, _words,
)  # fmt: skip
assert protos.message_class("GraphDef"), "the message types are loaded before a limit of memory is set"
