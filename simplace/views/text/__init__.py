"""Text of a result: summaries and tables."""
