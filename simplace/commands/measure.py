"""`simplace measure`: record how long a graph file's ops take on this computer's CPU."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from simplace.commands import options as words
from simplace.commands import output


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("measure", help="record how long a graph file's ops take on this computer's CPU")
    parser.add_argument("target", metavar="GRAPH", help="a .pb or .pbtxt graph without placeholders")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the cost file to write, for --costs")
    parser.add_argument("--intra-op", metavar="N", type=words.whole, default=1, help="threads that share one op "
                        "(default: %(default)s)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=words.whole, default=10, help="steps to trace "
                        "(default: %(default)s)")  # fmt: skip
    parser.set_defaults(command=_measure)


def _measure(options: argparse.Namespace) -> int:
    from simplace.costs.recorded import cost_file
    from simplace.oracle.measure.measure import measure

    output.check_writable(options.output)
    found = measure(Path(options.target), intra_op=options.intra_op, steps=max(1, options.steps))
    content = cost_file(found.seconds, intra_op=found.intra_op, gap_s=found.gap, tensorflow=found.tensorflow)
    output.write(options.output, (json.dumps(content, indent=1) + "\n").encode())
    print(f"wrote {options.output}", file=sys.stderr)
    return 0
