"""Pause Python's cyclic garbage collector while a large graph is built.

A graph is millions of objects that point at each other and all stay alive until it is done, so every pass of the
collector over them is in vain: it takes half of the time at 100,000 nodes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 50_000  # objects, whose pass takes milliseconds; and so can counting those that are frozen


@contextmanager
def paused_collector() -> Iterator[None]:
    """Turn the collector off for a while, unless it is off already.

    What was made meanwhile counts as old then, if it is much: nearly all of it stays, and a pass over it would be one
    more in vain.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            made_many = gc.get_count()[0] > _MANY
            if made_many and not gc.get_freeze_count():  # nobody else keeps objects away from the collector
                gc.freeze()
                gc.unfreeze()
            gc.enable()
