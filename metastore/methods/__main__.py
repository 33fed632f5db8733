"""Print a generated page: `python -m metastore.methods methods > docs/methods.md`, or `privileges`. It never starts a server."""

import sys

from metastore.methods import METHODS
from metastore.methods.documents import RULES
from metastore.methods.documents import document as privileges
from metastore.methods.forms.entry import document as methods
from metastore.methods.operations.legacy import ANSWERS

sys.stdout.write({"methods": lambda: methods(METHODS, ANSWERS), "privileges": lambda: privileges(RULES)}[sys.argv[1]]())
