"""What follows from a simulated step: times, waits, memory, parallelism."""
