"""Run simplace from the command line: `simplace` or `python -m simplace`."""

from __future__ import annotations

import os


def main() -> int:
    """Run one command; return its exit status. An interrupt during the imports is handled, too."""
    try:
        from simplace.cli import main as run
    except KeyboardInterrupt:
        os.write(2, b"simplace: interrupted\n")
        return 130
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
