"""Replay, check, explain and draw how TensorFlow places a program on devices."""

from simplace._version import __version__

__all__ = ["__version__"]
