"""The notification log: an event row for every change, written inside the change's own transaction.

`log.py` is the listener and makes the events of rows, `messages.py` makes the messages of each change, `thrift_json.py` writes the structs
inside a message, `named.py` reads the tables that a message names, `packing.py` puts many events of one change into a row. Readers give the
rows their ids (`store/operations/notifications.py`), so that writers never wait for each other here.
"""

from metastore.listeners.notifications.log import NotificationLog, events_of, message_text
from metastore.listeners.notifications.named import NamedTable, named_beside

__all__ = ["NamedTable", "NotificationLog", "events_of", "message_text", "named_beside"]
