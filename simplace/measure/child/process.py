"""Run a target under TensorFlow with tracing, and write down when each node ran: a process of its own.

The arguments are a JSON request, see `simplace.measure.measurement`, and the process that waits for the answer.
TensorFlow's rewrites are off, so that the nodes that run are those of the target.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from simplace.oracle.orphan import end_with_parent


def main(request_file: str, parent: str) -> int:
    """Run the request of a parent; return the exit status."""
    end_with_parent(int(parent))
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_OVERRIDE_GLOBAL_THREADPOOL"] = "1"
    if not request["onednn"]:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    from simplace.measure.child.answer import answer_request  # TensorFlow reads the environment when it is imported

    values: dict[str, Any] = answer_request(request)
    Path(request["answer"]).write_text(json.dumps(values), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
