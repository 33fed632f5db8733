"""Methods of scheduled queries."""

from __future__ import annotations

from metastore.methods.forms.entry import Handler
from metastore.service.engines import scheduled_queries

METHODS: dict[str, Handler] = {
    "scheduled_query_maintenance": lambda call, args: scheduled_queries.maintain(call, args.request),
    "get_scheduled_query": lambda call, args: scheduled_queries.get(call, args.scheduleKey),
    "scheduled_query_poll": lambda call, args: scheduled_queries.poll(call, args.request.clusterNamespace),
    "scheduled_query_progress": lambda call, args: scheduled_queries.report(call, args.info),
}
