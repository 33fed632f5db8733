"""Methods of data connectors."""

from __future__ import annotations

from typing import Any

from metastore.methods.forms.entry import Handler
from metastore.service.call.context import Call
from metastore.service.engines import data_connectors


def _drop(call: Call, args: Any) -> None:
    request = args.dropDcReq
    data_connectors.drop_data_connector(
        call, request.connectorName, if_exists=bool(request.ifNotExists), check_references=bool(request.checkReferences)
    )


METHODS: dict[str, Handler] = {
    "create_dataconnector_req": lambda call, args: data_connectors.create_data_connector(call, args.connectorReq.connector),
    "get_dataconnector_req": lambda call, args: data_connectors.get_data_connector(call, args.request.connectorName),
    "get_dataconnectors": lambda call, _args: data_connectors.get_data_connectors(call),
    "alter_dataconnector_req": lambda call, args: data_connectors.alter_data_connector(
        call, args.alterReq.connectorName, args.alterReq.newConnector
    ),
    "drop_dataconnector_req": _drop,
}
