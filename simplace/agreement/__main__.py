"""The commands: `python -m simplace.agreement` writes the table, `... random` runs random programs."""

from __future__ import annotations

import argparse
import datetime
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from simplace.agreement.campaign import Count, rounds
from simplace.errors import SimplaceError
from simplace.oracle.machine import Machine


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status: 1 where anything differs."""
    options = _parser().parse_args(arguments)
    try:
        return _random(options) if options.command == "random" else _table(options)
    except SimplaceError as error:
        print(f"simplace.agreement: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simplace.agreement", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    table = commands.add_parser("table", help="compare samples and corpus, write docs/agreement.md (the default)")
    for each in (parser, table):
        each.add_argument("--only", metavar="TEXT", default="", help="only programs whose name holds TEXT, to stdout")
    chance = commands.add_parser("random", help="compare random programs")
    chance.add_argument("--seed", type=int, help="the first program's seed (default: a fresh one, printed)")
    chance.add_argument("--programs", type=int, default=1000, metavar="N", help="how many (default: %(default)s)")
    chance.add_argument("--batch", type=int, default=150, metavar="N", help="so many a process (default: %(default)s)")
    chance.add_argument("--keep", type=Path, metavar="DIR", help="write the programs that differ there")
    chance.add_argument("--record", action="store_true", help="add the counts to docs/agreement-random.json")
    chance.add_argument("--shrink", action="store_true", help="shrink the programs that differ first")
    return parser


def _random(options: argparse.Namespace) -> int:
    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    count = Count()
    for part in rounds(seed, options.programs, options.batch, count):
        print(f"{part.first_seed}: cpu:{part.machine.cpus},gpu:{part.machine.gpus}: {count}", flush=True)
        if part.batch.ended:
            print(f"    the process ended early: {part.batch.ended}", flush=True)
        for name, source in part.differing.items():
            print(f"    {name} differs", flush=True)
            for outcome in part.batch.outcomes:
                if outcome.program == name:
                    print("".join(f"        {line[:600]}\n" for line in outcome.differences[:2]), end="", flush=True)
            if options.keep:
                _keep(options, name, source, part.machine)
    if options.record:
        _record(seed, count)
    return 1 if count.differing else 0


def _record(seed: int, count: Count) -> None:
    from simplace.agreement.table import RANDOM

    known = json.loads(RANDOM.read_text(encoding="utf-8")) if RANDOM.exists() else []
    known.append({
        "date": datetime.date.today().isoformat(), "seed": seed, "programs": count.programs,
        "placements": count.placements, "refused": count.refused, "nodes": count.nodes,
        "differing": count.differing, "by_chance": count.by_chance, "ended": len(count.ends),
    })  # fmt: skip
    RANDOM.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _keep(options: argparse.Namespace, name: str, source: str, machine: Machine) -> None:
    from simplace.agreement.regressions import write
    from simplace.agreement.shrinker import shrink

    options.keep.mkdir(parents=True, exist_ok=True)
    write(options.keep / f"{name}.py", shrink(source, machine) if options.shrink else source, machine)


def _table(options: argparse.Namespace) -> int:
    from simplace.agreement import table

    return table.write(options.only)


if __name__ == "__main__":
    sys.exit(main())
