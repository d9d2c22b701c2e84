"""The sweep: functions of every op with a GPU kernel and of the `tf.*` surface, under emulated GPUs; none may die."""
