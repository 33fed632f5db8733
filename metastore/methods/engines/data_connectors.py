"""Methods of data connectors."""

from __future__ import annotations

from typing import Any

from metastore.methods.engines import engine_rules as rules
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADMIN, MethodRule
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
        ADMIN,
        sign=Sign.SINCE_4,
    ),
    reads(
        "get_dataconnectors",
        lambda call, _args: data_connectors.get_data_connectors(call),
        MethodRule(keep=rules.kept_for_admin, shows="all to the role `admin`, none to others"),
    ),
    changes(
        "alter_dataconnector_req",
        lambda call, args: data_connectors.alter_data_connector(call, args.alterReq.connectorName, args.alterReq.newConnector),
        ADMIN,
        sign=Sign.SINCE_4,
    ),
    changes("drop_dataconnector_req", _drop, ADMIN, sign=Sign.SINCE_4),
)
