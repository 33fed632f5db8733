"""The forms in which methods are described, and what their handlers share."""
