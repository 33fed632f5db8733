"""What one call carries: its client, names, time, hints for its answers."""
