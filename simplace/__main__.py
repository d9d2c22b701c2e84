"""Run simplace from the command line: `simplace` or `python -m simplace`."""

from simplace.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
