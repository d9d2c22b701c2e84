"""Inputs made to break a reader, and who tells whether they did."""
