"""Rows of notifications, figures and pages of lists."""
