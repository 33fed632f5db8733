"""Methods of scheduled queries."""

from __future__ import annotations

from metastore.methods.engines import engine_rules as rules
from metastore.methods.forms.entry import changes, reads
from metastore.methods.forms.rules import ADMIN, found_by, needs
from metastore.service.engines import scheduled_queries

METHODS = (
    changes(
        "scheduled_query_maintenance",
        lambda call, args: scheduled_queries.maintain(call, args.request),
        needs(found_by(rules.OWN_QUERY, rules.maintains_query), operation="ADMIN"),
    ),
    reads(
        "get_scheduled_query",
        lambda call, args: scheduled_queries.get(call, args.scheduleKey),
        needs(found_by(rules.OWN_QUERY, rules.reads_query), operation="ADMIN"),
    ),
    changes("scheduled_query_poll", lambda call, args: scheduled_queries.poll(call, args.request.clusterNamespace), ADMIN),
    changes("scheduled_query_progress", lambda call, args: scheduled_queries.report(call, args.info), ADMIN),
)
