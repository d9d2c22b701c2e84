"""The silent failures of a program: found, and reported with their remedy."""
