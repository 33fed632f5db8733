"""Methods of data connectors."""

from __future__ import annotations

from typing import Any

from metastore.methods.engines import engine_rules as rules
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADMIN, SEE, MethodRule, needs
from metastore.service.authorizer import OWN
from metastore.service.call.context import Call
from metastore.service.call.releases import Sign
from metastore.service.engines import data_connectors


def _drop(call: Call, args: Any) -> None:
    request = args.dropDcReq
    data_connectors.drop_data_connector(
        call, request.connectorName, if_exists=bool(request.ifNotExists), check_references=bool(request.checkReferences)
    )


METHODS = (
    changes(
        "create_dataconnector_req",
        lambda call, args: data_connectors.create_data_connector(call, args.connectorReq.connector),
        ADMIN,
        sign=Sign.SINCE_4,
    ),
    reads(
        "get_dataconnector_req",
        lambda call, args: data_connectors.get_data_connector(call, args.request.connectorName),
        needs(rules.on_connector(SEE, "request.connectorName"), operation="DESCDATACONNECTOR"),
        sign=Sign.SINCE_4,
    ),
    reads(
        "get_dataconnectors",
        lambda call, _args: data_connectors.get_data_connectors(call),
        MethodRule(keep=rules.kept_connectors, shows="those that are shown"),
    ),
    changes(
        "alter_dataconnector_req",
        lambda call, args: data_connectors.alter_data_connector(call, args.alterReq.connectorName, args.alterReq.newConnector),
        needs(rules.on_connector(OWN, "alterReq.connectorName"), operation="ALTERDATACONNECTOR"),
        sign=Sign.SINCE_4,
    ),
    changes(
        "drop_dataconnector_req",
        _drop,
        needs(rules.on_connector(OWN, "dropDcReq.connectorName"), operation="DROPDATACONNECTOR", renews=True),
        sign=Sign.SINCE_4,
    ),
)
