"""Print docs/privileges.md: `python -m metastore.wire.authorization > docs/privileges.md`. It never starts a server."""

import sys

from metastore.wire.authorization.table import RULES, document

sys.stdout.write(document(RULES))
