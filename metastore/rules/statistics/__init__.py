"""Column statistics: their kinds, how they merge, and when they are valid."""
