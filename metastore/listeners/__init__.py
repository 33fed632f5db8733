"""Hooks before, inside and after every operation. Never changes an operation: a pre-listener may only refuse it.

PreEventListener        before an operation; its error reaches the client
TransactionalListener   inside the operation's database transaction; its error rolls the operation back
PostEventListener       after the commit, or after the failure; its error is logged
EndFunctionListener     around every call, with its outcome; its error is logged
InitListener            once, when a worker process is ready to serve; its error stops the process
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
