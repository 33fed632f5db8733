"""Hooks before, inside and after every operation. Never decides what an operation does: a pre-listener may only refuse it.

PreEventListener        before an operation; what it raises reaches the client
TransactionalListener   inside the operation's database transaction; what it raises rolls the operation back
PostEventListener       after the commit, or after the failure; what it raises is logged
EndFunctionListener     around every call, with its outcome; what it raises is logged
InitListener            once, when a worker process is ready to serve; what it raises stops it
"""

from metastore.listeners.contract import (
    EndFunctionListener,
    InitListener,
    PostEventListener,
    PreEventListener,
    TransactionalListener,
)
from metastore.listeners.registry import Listeners

__all__ = ["EndFunctionListener", "InitListener", "Listeners", "PostEventListener", "PreEventListener", "TransactionalListener"]
