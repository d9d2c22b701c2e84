"""The subcommands, a module each: `add` says its words, the rest runs it."""
