"""Join the entries of all methods, and write them as docs/privileges.md. It never asks anybody."""

from __future__ import annotations

from collections.abc import Mapping

from metastore.wire.authorization import objects, partitions, server, transactions
from metastore.wire.authorization.rules import ADMIN, OPEN, Rule
from metastore.wire.methods.table import ALL

_WITHOUT_HANDLER = """
    add_index alter_index add_master_key remove_master_key update_master_key get_master_keys add_token get_token remove_token
    get_all_token_identifiers add_package drop_package find_package get_all_packages add_replication_metrics get_replication_metrics
    add_runtime_stats get_runtime_stats add_schema_version get_schema_version get_schema_all_versions get_schema_latest_version
    get_schemas_by_cols drop_schema_version set_schema_version_state map_schema_version_to_serde create_ischema alter_ischema drop_ischema
    get_ischema add_serde get_serde cache_file_metadata clear_file_metadata get_file_metadata get_file_metadata_by_expr put_file_metadata
    create_dataconnector_req alter_dataconnector_req drop_dataconnector_req get_dataconnector_req get_dataconnectors
    create_resource_plan alter_resource_plan drop_resource_plan get_resource_plan get_active_resource_plan get_all_resource_plans
    validate_resource_plan create_wm_trigger alter_wm_trigger drop_wm_trigger get_triggers_for_resourceplan create_wm_pool alter_wm_pool
    drop_wm_pool create_or_update_wm_mapping drop_wm_mapping create_or_drop_wm_trigger_to_pool_mapping create_stored_procedure
    get_stored_procedure drop_stored_procedure get_all_stored_procedures get_scheduled_query scheduled_query_maintenance
    scheduled_query_poll scheduled_query_progress get_properties set_properties
"""
WITHOUT_HANDLER = frozenset(_WITHOUT_HANDLER.split())
"""Methods that this server does not answer to anybody; whoever writes a handler gives them an entry."""


def join() -> dict[str, Rule]:
    """Return the entries of all methods. Raises ValueError for one that is there twice, missing, or no method."""
    rules: dict[str, Rule] = dict.fromkeys(WITHOUT_HANDLER, ADMIN)
    for module in (objects, partitions, transactions, server):
        for name, rule in module.ENTRIES.items():
            if name in rules:
                raise ValueError(f"{module.__name__}: method {name} has an entry already; keep one")
            rules[name] = rule
    if missing := sorted(ALL - rules.keys()):
        raise ValueError(f"these methods have no entry that says who may call them: {', '.join(missing)}")
    if unknown := sorted(rules.keys() - ALL):
        raise ValueError(f"the interface has no methods {', '.join(unknown)}; correct the names")
    return rules


RULES: Mapping[str, Rule] = join()


def document(rules: Mapping[str, Rule]) -> str:
    """Return the text of docs/privileges.md."""
    lines = [
        "# Privileges by method",
        "",
        "What each method of the interface asks of its caller where [authorization](authorization.md) is on, and what of its reply is",
        "shown. *Any privilege* on a table is what shows that it is there. Where a method names what its caller may not see, it answers",
        "as it does about something that is not there. The owner of an object may do everything with it, the role `admin` everything.",
        "Generated: `python -m metastore.wire.authorization > docs/privileges.md`.",
        "",
        "| method | asks for | shows |",
        "|---|---|---|",
    ]
    for name in sorted(rules, key=str.lower):
        rule = rules[name]
        asks = "; ".join(ask.text for ask in rule.asks) or ("nothing" if rule is OPEN or rule.shows else "")
        lines.append(f"| `{name}` | {asks}{' (no handler)' if name in WITHOUT_HANDLER else ''} | {rule.shows} |")
    return "\n".join(lines) + "\n"
