"""The content of one call: its client, names, time, hints for its answers."""
