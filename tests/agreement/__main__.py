"""The commands: `python -m tests.agreement` writes the table, `... random` runs random programs."""

from __future__ import annotations

import argparse
import datetime
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from simplace.errors import SimplaceError
from simplace.machine.machine import Machine
from tests.agreement.campaign import Count, record, rounds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status: 1 where anything differs."""
    options = _parser().parse_args(arguments)
    try:
        return _COMMANDS[options.command or "table"](options)
    except SimplaceError as error:
        print(f"tests.agreement: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.agreement", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    table = commands.add_parser("table", help="compare samples and corpus, write docs/agreement.md (the default)")
    _add_choice(parser, only=[""], column=[""], stale=False, jobs=1)
    unset = argparse.SUPPRESS  # a default of the subparser's own would replace what was given before its name
    _add_choice(table, only=unset, column=unset, stale=unset, jobs=unset)
    commands.add_parser("pages", help="write the pages anew from docs/agreement/*.json")
    chance = commands.add_parser("random", help="compare random programs")
    chance.add_argument("--seed", type=int, help="the first program's seed (default: a fresh one, printed)")
    chance.add_argument("--programs", type=int, default=1000, metavar="N", help="how many (default: %(default)s)")
    chance.add_argument("--batch", type=int, default=400, metavar="N", help="so many a process (default: %(default)s)")
    chance.add_argument("--jobs", type=int, default=unset, metavar="N", help="so many processes at once")
    chance.add_argument("--keep", type=Path, metavar="DIR", help="write the programs that differ there")
    chance.add_argument("--record", action="store_true", help="keep the counts in docs/agreement-random.json")
    chance.add_argument("--shrink", action="store_true", help="shrink the programs that differ first")
    eager = commands.add_parser("eager", help="compare random programs that run op by op")
    eager.add_argument("--seed", type=int, help="the first program's seed (default: a fresh one, printed)")
    eager.add_argument("--programs", type=int, default=400, metavar="N", help="how many (default: %(default)s)")
    eager.add_argument("--batch", type=int, default=100, metavar="N", help="so many a process (default: %(default)s)")
    return parser


def _add_choice(parser: argparse.ArgumentParser, **defaults: object) -> None:
    """Add the arguments that choose what the table compares."""
    what = {"only": "scripts", "column": "columns"}
    for name, them in what.items():
        words = f"only {them} whose name contains one of the texts"
        parser.add_argument(f"--{name}", metavar="TEXT", nargs="+", type=_read_text, default=defaults[name], help=words)
    stale = "only what is not compared yet, or was changed since"
    parser.add_argument("--stale", action="store_true", default=defaults["stale"], help=stale)
    jobs = "so many runs at a time (default: 1)"
    parser.add_argument("--jobs", metavar="N", type=int, default=defaults["jobs"], help=jobs)


def _read_text(text: str) -> str:
    if text in _COMMANDS:
        raise argparse.ArgumentTypeError(f"{text!r} is a command, which goes before --only and --column")
    return text


def _eager(options: argparse.Namespace) -> int:
    from tests.agreement.campaign import eager_rounds

    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    differs = False
    for first, machine, batch in eager_rounds(seed, options.programs, options.batch):
        differs = differs or bool(batch.differences)
        print(f"{first}: cpu:{machine.cpus},gpu:{machine.gpus}: {batch.same}/{batch.total} ops agree, {batch.refused} "
              f"refused", flush=True)  # fmt: skip
        for line in batch.differences[:8]:
            print(f"    {line[:900]}", flush=True)
        if batch.unreached:
            print(f"    {batch.unreached[0]} ended the process", flush=True)
    return int(differs)


def _random(options: argparse.Namespace) -> int:
    from tests.agreement.table import RANDOM

    seed = random.SystemRandom().randrange(1 << 30) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    count = Count()
    for part in rounds(seed, options.programs, options.batch, count, jobs=options.jobs):
        if options.record:
            record(RANDOM, datetime.date.today(), seed, count)
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
    return 1 if count.differing else 0


def _keep(options: argparse.Namespace, name: str, source: str, machine: Machine) -> None:
    from tests.agreement.regressions import Case, write
    from tests.agreement.shrinker import shrink

    options.keep.mkdir(parents=True, exist_ok=True)
    write(options.keep / f"{name}.py", Case(shrink(source, machine) if options.shrink else source, machine))


def _table(options: argparse.Namespace) -> int:
    from tests.agreement import table

    selection = table.Selection(tuple(options.only), tuple(options.column), options.stale, max(1, options.jobs))
    return table.write(selection)


def _pages(_: argparse.Namespace) -> int:
    from tests.agreement import table

    table.write_pages()
    return 0


_COMMANDS = {"table": _table, "random": _random, "eager": _eager, "pages": _pages}


if __name__ == "__main__":
    sys.exit(main())
