"""Which lines of a program to change so that a step takes less time, each change tried before it is suggested."""
