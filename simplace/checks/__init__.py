"""What a user demands of a result, and whether it holds."""
