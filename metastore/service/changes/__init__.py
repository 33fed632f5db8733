"""The frame of every change: rows first, directories second, data deleted last, and recovery from killed processes."""
