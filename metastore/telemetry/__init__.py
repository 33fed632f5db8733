"""What a server counts, keeps and reports of its calls."""
