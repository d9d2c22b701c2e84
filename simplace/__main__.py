"""Run simplace from the command line: `simplace` or `python -m simplace`."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn


def main() -> int:
    """Run one command, and end the process with its exit status. An interrupt during the imports is handled, too."""
    try:
        from simplace.cli import main as run
    except KeyboardInterrupt:
        os.write(2, b"simplace: interrupted\n")
        return 130
    return _end_process(run())


def _end_process(status: int) -> NoReturn:
    """End the process without freeing a large graph object by object, which takes a tenth of the time of placing it."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # such as of a full disk; what must be known of it has been said
            continue
    os._exit(status)


if __name__ == "__main__":
    raise SystemExit(main())
