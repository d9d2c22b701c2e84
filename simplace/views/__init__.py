"""What to show of a result; `viz` knows how it looks."""
