"""One self-contained HTML page of a result: its data, its assets, their assembly."""
