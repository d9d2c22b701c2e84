"""The subcommands, a module each: `add` declares its arguments, the rest runs it."""
