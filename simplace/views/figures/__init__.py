"""Figures of a result; `viz` knows how they look."""
