"""Devices: their names, and the sets of them that a program sees."""
