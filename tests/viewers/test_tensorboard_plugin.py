"""The tab of TensorBoard: what a run recorded, asked for as the tab's script does it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client
from werkzeug.wrappers import Response

from simplace.viewers.tensorboard_plugin import SimplacePlugin
from tests.exports.test_formats import WORLD, data
from tests.worlds import place

RUN = {"run": "train", "kind": "graphs", "tag": "__run_graph__"}


def plugin(logs: Path) -> SimplacePlugin:
    runs = EventMultiplexer()
    runs.AddRunsFromDirectory(str(logs))
    runs.Reload()
    return SimplacePlugin(TBContext(data_provider=MultiplexerDataProvider(runs, str(logs)), logdir=str(logs)))


def ask(logs: Path, path: str, **query: str) -> Response:
    route = plugin(logs).get_plugin_apps()[path]
    environ = {"HTTP_ACCEPT_ENCODING": "identity"}
    return Client(route, Response).get(f"{path}?{urlencode(query)}", environ_base=environ)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "events.out.tfevents.1.simplace").write_bytes(data("tensorboard", place(*WORLD)))
    return tmp_path


def test_the_tab_lists_the_graphs_of_the_runs(logs: Path) -> None:
    found = json.loads(ask(logs, "/graphs").get_data())
    assert found == [{**RUN, "title": "train"}]


def test_a_graph_is_placed_on_the_devices_that_are_named(logs: Path) -> None:
    page = ask(logs, "/page", **RUN, devices="cpu:1,gpu:3")
    assert (page.status_code, page.content_type) == (200, "text/html; charset=utf-8")
    text = page.get_data(as_text=True)
    assert "cpu:1,gpu:3" in text
    assert all(f'"{name}"' in text for name in ("mm", "sum"))


def test_without_devices_there_are_those_that_the_graph_names(logs: Path) -> None:
    assert "cpu:1,gpu:2" in ask(logs, "/page", **RUN).get_data(as_text=True)


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({**RUN, "devices": "gpu:x"}, 400, "simplace: cannot read 'gpu:x' in the device list"),
        ({**RUN, "run": "other"}, 404, "simplace: nothing is recorded as 'other'; reload the tab"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_line(logs: Path, query: dict[str, str], status: int, said: str) -> None:
    answer = ask(logs, "/page", **query)
    assert (answer.status_code, answer.content_type) == (status, "text/plain; charset=utf-8")
    assert answer.get_data(as_text=True).startswith(said)
    assert len(answer.get_data(as_text=True).splitlines()) == 1


def test_the_script_is_served(logs: Path) -> None:
    script = ask(logs, "/index.js")
    assert script.content_type.startswith("application/javascript")
    assert "export async function render()" in script.get_data(as_text=True)


def test_tensorboard_finds_the_plugin_by_its_entry_point() -> None:
    from importlib.metadata import entry_points

    (found,) = (one for one in entry_points(group="tensorboard_plugins") if one.name == "simplace")
    assert found.load() is SimplacePlugin


@pytest.mark.tf
def test_the_graphs_of_a_trace_are_programs(tmp_path: Path) -> None:
    import tensorflow as tf

    @tf.function
    def double(x: Any) -> Any:
        return tf.matmul(x, x)

    writer = tf.summary.create_file_writer(str(tmp_path / "traced"))
    with writer.as_default():
        tf.summary.trace_on(graph=True)
        double(tf.ones((2, 2)))
        tf.summary.trace_export("double", step=0)
    writer.close()
    (found,) = (one for one in json.loads(ask(tmp_path, "/graphs").get_data()) if one["kind"] != "graphs")
    assert (found["run"], found["tag"], found["title"]) == ("traced", "double", "traced: double")
    query = {key: found[key] for key in RUN}
    page = ask(tmp_path, "/page", **query, devices="cpu:1,gpu:2")
    assert page.status_code == 200, page.get_data(as_text=True)
    assert "MatMul" in page.get_data(as_text=True)
