"""What pytest leaves alone here: a program that the tests run."""

collect_ignore = ["watched_program.py"]
