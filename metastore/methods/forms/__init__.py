"""The forms in which methods are described, and the common parts of their handlers."""
