"""The notification log: an event row for every change, written inside the change's own transaction. It never reads one.

`log.py` is the listener, `messages.py` says what each change tells, `thrift_json.py` writes the structs inside a message. Readers give the
rows their ids (`store/notifications.py`), so that writers never wait for each other here.
"""

from metastore.listeners.notifications.log import NotificationLog, in_its_format

__all__ = ["NotificationLog", "in_its_format"]
