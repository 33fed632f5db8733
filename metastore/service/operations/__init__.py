"""For operators of a server: health, figures, notifications, pages to browse."""
