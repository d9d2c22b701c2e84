"""Notebooks run as plain Python and under simplace, side by side: `python -m tests.guides FOLDER`."""
