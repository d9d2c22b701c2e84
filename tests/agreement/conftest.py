"""What pytest is not to import."""

collect_ignore = ["corpus", "cases"]  # programs that are run under observation, never imported
