"""Lay out a figure in rows of devices: each device for itself, lines along lanes around all boxes."""
