"""Consent before the ops of a SavedModel or graph file are run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simplace.commands import output
from simplace.errors import TargetError

_WHY = "measuring runs the ops in this file, and they can read and write any of your files"


def add_trust(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Add `--run-untrusted`; `when` begins its help."""
    parser.add_argument("--run-untrusted", action="store_true", help=f"{when}run the ops of a SavedModel or graph file "
                        "without asking; they have all of your permissions")  # fmt: skip


def require_trust(options: argparse.Namespace) -> None:
    """Ask before a file is run, on a terminal; elsewhere raise `TargetError`. A script needs no consent."""
    if options.run_untrusted or _is_script(options.target) or _answers_yes(options.target):
        return
    raise TargetError(f"{options.target}: {_WHY}; if you trust it: --run-untrusted")


def _is_script(target: str) -> bool:
    """Return whether a target is a script, or nothing that could be run."""
    paths = [path for path in (Path(target), Path(target.rpartition(":")[0])) if path.name and path.exists()]
    return not paths or (paths[0].suffix == ".py" and not paths[0].is_dir())


def _answers_yes(target: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    output.print_text(f"{target}: {_WHY}. Run it? [y/N]", sys.stderr)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
