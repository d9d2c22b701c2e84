"""A discrete-event simulation of one step of a placed and partitioned graph."""
