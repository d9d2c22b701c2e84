"""The silent failures of a program: found, and said with their remedy."""
