"""The version of simplace."""

__version__ = "0.1.0"
