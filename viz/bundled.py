"""Render DOT from standard input with the Graphviz bundled in pygraphviz: a script that `viz.engine` runs.

A process of its own, for Graphviz reads FONTCONFIG_FILE once, may run for hours and may crash. It imports nothing from
viz, so that it starts fast and from anywhere.
"""

from __future__ import annotations

import sys


def main(file_format: str, dots_per_inch: str) -> int:
    """Write the drawing of the DOT on standard input to standard output; return the exit status."""
    import pygraphviz  # not at the top: where it is missing, this file must still import (doctest collection)

    graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode("utf-8"))
    graph.graph_attr["dpi"] = dots_per_inch
    sys.stdout.buffer.write(graph.draw(format=file_format, prog="dot"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
