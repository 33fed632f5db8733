"""For those who run a server: health, figures, notifications, pages to browse."""
