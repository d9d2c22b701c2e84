"""Partitioning of a placed graph: tensor sizes, memory types, transfers between devices."""
