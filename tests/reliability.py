"""Make all figures of docs/reliability.md anew: `python -m tests.reliability [--jobs N]`, which takes some hours.

In turn: 20,000 hostile inputs, compared with TensorFlow; every op and function on 1, 2 and 8 GPUs; signals.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def main() -> int:
    """Run the three commands; return 1 if one found what must not be."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many processes at once (default: 1)")
    jobs = ["--jobs", str(parser.parse_args().jobs)]
    commands = (
        ["tests.hostile", "20000", "--seed", "1", "--tf", *jobs],
        ["tests.sweep", *jobs],
        ["tests.signals"],
    )
    ends = [subprocess.run([sys.executable, "-m", *words, "--write", str(PAGE)], check=False) for words in commands]
    return int(any(end.returncode for end in ends))


if __name__ == "__main__":
    sys.exit(main())
