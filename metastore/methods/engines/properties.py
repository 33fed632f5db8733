"""Methods of properties."""

from __future__ import annotations

from typing import Any

from metastore.idl import PropertyGetResponse
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADMIN
from metastore.service.call.context import Call
from metastore.service.engines import properties


def _get_properties(call: Call, args: Any) -> PropertyGetResponse:
    request = args.req
    found = properties.get(call, request.nameSpace, request.mapPrefix, request.mapPredicate, request.mapSelection)
    return PropertyGetResponse(properties=found)


def _set_properties(call: Call, args: Any) -> bool:
    properties.put(call, args.req.nameSpace, args.req.propertyMap)
    return True


METHODS = (
    reads("get_properties", _get_properties, ADMIN),
    changes("set_properties", _set_properties, ADMIN),
)
