"""Print a generated page: `python -m metastore.methods methods > docs/methods.md`, or `privileges`. It never starts a server."""

import sys

from metastore.methods.documents import methods, privileges

sys.stdout.write({"methods": methods, "privileges": privileges}[sys.argv[1]]())
