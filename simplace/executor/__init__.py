"""When what runs: a discrete-event simulation of a placed and partitioned graph."""
