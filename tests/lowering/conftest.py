"""Keep pytest's doctest collection from importing TensorFlow."""

collect_ignore = ["child.py", "cases.py"]
