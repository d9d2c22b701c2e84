"""The seed of a hunt for new faults."""

import os
import random


def pick_seed() -> int:
    """Return the seed that the variable SIMPLACE_SEED names, in CI that of the commit; else a new one."""
    given = os.environ.get("SIMPLACE_SEED", "")
    return int(given) if given else random.SystemRandom().randrange(1 << 30)
