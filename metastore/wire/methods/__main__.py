"""Print docs/methods.md: `python -m metastore.wire.methods > docs/methods.md`. This module never starts a server."""

import sys

from metastore.wire.methods import METHODS
from metastore.wire.methods.legacy import ANSWERS
from metastore.wire.methods.table import document

sys.stdout.write(document(METHODS, ANSWERS))
