"""A tab of TensorBoard that shows the page of `simplace report` for a graph of a run, on devices that are typed in.

See https://github.com/tensorflow/tensorboard/blob/master/ADDING_A_PLUGIN.md. TensorBoard finds the plugin by its entry
point, and imports it at its start: what places graphs is imported when a page is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

_FOUND, _BAD, _MISSING = 200, 400, 404


class SimplacePlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # TensorBoard has no types
    """Serve a list of graphs, and a page for each."""

    plugin_name = "simplace"

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._data = context.data_provider

    def get_plugin_apps(self) -> Mapping[str, Callable[..., Any]]:
        """Return what is served, by path."""
        return {"/index.js": _serve_script, "/graphs": self._serve_graphs, "/page": self._serve_page}

    def is_active(self) -> bool:
        """Return False: TensorBoard shows the tab where there are data of `data_plugin_names`."""
        return False

    def data_plugin_names(self) -> tuple[str, ...]:
        """Name the kinds of data that hold graphs."""
        from simplace.viewers.recorded_graphs import KINDS

        return KINDS

    def frontend_metadata(self) -> Any:
        """Name the script of the tab."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="simplace")

    def _serve_graphs(self, environ: Any, start: Any) -> Any:
        from simplace.viewers.recorded_graphs import list_recorded

        found = list_recorded(self._data, plugin_util.context(environ), plugin_util.experiment_id(environ))
        listed = [{"run": one.run, "kind": one.kind, "tag": one.tag, "title": one.title} for one in found]
        return http_util.Respond(wrappers.Request(environ), listed, "application/json")(environ, start)

    def _serve_page(self, environ: Any, start: Any) -> Any:
        request = wrappers.Request(environ)
        text, status = self._write_page(request, environ)
        is_page = status == _FOUND
        # The page has a policy of its own, which allows its scripts and nothing else.
        content = f"text/{'html' if is_page else 'plain'}; charset=utf-8"
        return wrappers.Response(text, status, {"X-Content-Type-Options": "nosniff"}, content_type=content)(
            environ, start
        )

    def _write_page(self, request: wrappers.Request, environ: Any) -> tuple[str, int]:
        from simplace.errors import SimplaceError
        from simplace.report.page import write_page
        from simplace.viewers.recorded_graphs import Recorded, place_recorded

        asked = Recorded(*(request.args.get(key, "") for key in ("run", "kind", "tag")))
        context, experiment = plugin_util.context(environ), plugin_util.experiment_id(environ)
        try:
            return write_page(
                place_recorded(self._data, context, experiment, asked, request.args.get("devices") or None)
            ), _FOUND
        except SimplaceError as error:
            return f"simplace: {error}", _BAD
        except (KeyError, IndexError):
            return f"simplace: nothing is recorded as {asked.title!r}; reload the tab", _MISSING


def _serve_script(environ: Any, start: Any) -> Any:
    text = files("simplace.viewers").joinpath("assets", "index.js").read_text(encoding="utf-8")
    return http_util.Respond(wrappers.Request(environ), text, "application/javascript")(environ, start)
