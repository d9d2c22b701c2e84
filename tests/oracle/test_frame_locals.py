"""A variable read from a frame that runs: the frame keeps nothing alive, and what `locals` returned stays as it is."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from simplace.oracle.child.frame_locals import read_local


class Thing:
    """What a frame may keep alive."""


def test_a_deleted_variable_goes_before_its_frame_ends() -> None:
    thing = Thing()
    known = weakref.ref(thing)
    assert read_local(sys._getframe(), "thing") is thing
    del thing
    gc.collect()
    assert known() is None


def test_the_dictionary_of_locals_keeps_what_it_had() -> None:
    thing = Thing()
    held = locals()
    assert read_local(sys._getframe(), "thing") is held["thing"] is thing


def test_variables_of_closures_modules_and_classes_are_found() -> None:
    outer = 1

    def read_outer() -> Any:
        return outer and read_local(sys._getframe(), "outer")

    class Body:
        inner = 2
        found = read_local(sys._getframe(), "inner")
        assert inner == 2, "the body's variables are still there"

    names: dict[str, Any] = {"read_local": read_local, "sys": sys}
    exec("value = 3\nfound = read_local(sys._getframe(), 'value')\nassert value == 3", names)
    assert (read_outer(), Body.found, names["found"]) == (1, 2, 3)


def test_a_name_without_value_gives_the_default() -> None:
    assert read_local(sys._getframe(), "nothing", 7) == 7
    assert read_local(sys._getframe(), "later", 7) == 7
    later = 8
    assert read_local(sys._getframe(), "later", 7) == later
