"""Kinds of SQL statements, as metrics count them."""

from __future__ import annotations

KINDS = ("select", "lock", "insert", "update", "delete", "other")
"""Kinds of statements; "lock" are queries that lock rows, and so may wait for others."""
LOCK = KINDS.index("lock")
_OTHER = KINDS.index("other")
_LOCKING = ("FOR UPDATE", "FOR SHARE", "LOCK IN SHARE MODE")


def kind_of(text: str) -> int:
    """Return the place of a statement's kind in `KINDS`."""
    word = text[:6].lower()
    if word == "select" and any(phrase in text for phrase in _LOCKING):
        return LOCK
    return KINDS.index(word) if word in KINDS else _OTHER
