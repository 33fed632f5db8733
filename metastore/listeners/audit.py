"""The built-in audit log: one line per call on the logger `metastore.audit`. Never fails a call.

Switch it on with `end_function_listeners = ["metastore.listeners.audit:AuditLog"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore import log
from metastore.listeners.contract import EndFunctionListener
from metastore.listeners.events import FunctionEnd

if TYPE_CHECKING:
    from metastore.config import Config


class AuditLog(EndFunctionListener):
    """Writes who called what on which object, and how it ended."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._log = log.get("metastore.audit")

    def ended(self, function: FunctionEnd) -> None:
        """Write the line."""
        client = function.client
        self._log.info(
            "audit",
            user=client.user,
            address=client.address,
            method=client.method,
            object=function.object,
            outcome="ok" if function.success else type(function.error).__name__,
        )
