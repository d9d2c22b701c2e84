"""Which files of this folder are no tests."""

collect_ignore = ["programs"]  # programs that are run under observation, never imported
