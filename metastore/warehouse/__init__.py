"""Directories of databases, tables and partitions, on any file system of fsspec. Never looks at the database.

Warehouse          default places; make, rename, delete, summarise
MadeDirectories    the directories that one call made, and their exact undo
Reach              the storage that a call need not reach
Journal            the directories that a killed process was making
asking_first       runs a transaction that may use file systems
TakenAway          data that can still be put back
"""

from metastore.warehouse.bounded import asking_first
from metastore.warehouse.directories import Warehouse
from metastore.warehouse.journal import Journal, JournalEntry, Subject
from metastore.warehouse.reach import Reach, StorageUnreachable
from metastore.warehouse.summary import DirectorySummary
from metastore.warehouse.taken import DELETION, TakenAway
from metastore.warehouse.undo import MadeDirectories

__all__ = [
    "DELETION",
    "DirectorySummary",
    "Journal",
    "JournalEntry",
    "MadeDirectories",
    "Reach",
    "StorageUnreachable",
    "Subject",
    "TakenAway",
    "Warehouse",
    "asking_first",
]
