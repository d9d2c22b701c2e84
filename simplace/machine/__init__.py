"""The machine or cluster that a program is placed on."""
