"""Join the entries of all methods, and write them as docs/privileges.md. It never asks anybody."""

from __future__ import annotations

from collections.abc import Mapping

from metastore.methods import METHODS
from metastore.methods.accounts import privilege_rules as server
from metastore.methods.catalog import partition_rules as partitions
from metastore.methods.catalog import table_rules as objects
from metastore.methods.engines import constraints_rules as constraints
from metastore.methods.engines import engine_rules as engine
from metastore.methods.engines import functions_rules as functions
from metastore.methods.engines import registry_rules as registry
from metastore.methods.forms.entry import ALL
from metastore.methods.forms.rules import ADMIN, OPEN, MethodRule
from metastore.methods.transactions import transaction_rules as transactions

WITHOUT_HANDLER = ALL - METHODS.keys()
"""Methods that this server does not answer to anybody; whoever writes a handler gives it an entry."""


def join() -> dict[str, MethodRule]:
    """Return the entries of all methods. Raises ValueError for one that is there twice, missing, or no method."""
    rules: dict[str, MethodRule] = dict.fromkeys(WITHOUT_HANDLER, ADMIN)
    for module in (objects, functions, constraints, partitions, registry, transactions, engine, server):
        for name, rule in module.ENTRIES.items():
            if name in rules:
                raise ValueError(f"{module.__name__}: method {name} has an entry already; keep one")
            rules[name] = rule
    if missing := sorted(ALL - rules.keys()):
        raise ValueError(f"these methods have no entry that says who may call them: {', '.join(missing)}")
    if unknown := sorted(rules.keys() - ALL):
        raise ValueError(f"the interface has no methods {', '.join(unknown)}; correct the names")
    return rules


RULES: Mapping[str, MethodRule] = join()


def document(rules: Mapping[str, MethodRule]) -> str:
    """Return the text of docs/privileges.md."""
    lines = [
        "# Privileges by method",
        "",
        "What each method of the interface asks of its caller where [authorization](authorization.md) is on, and what of its reply is",
        "shown. *Any privilege* on a table is what shows that it is there. Where a method names what its caller may not see, it answers",
        "as it does about something that is not there. The owner of an object may do everything with it, the role `admin` everything.",
        "Generated: `python -m metastore.methods privileges > docs/privileges.md`.",
        "",
        "| method | asks for | shows |",
        "|---|---|---|",
    ]
    for name in sorted(rules, key=str.lower):
        rule = rules[name]
        asks = "; ".join(ask.text for ask in rule.asks) or ("nothing" if rule is OPEN or rule.shows else "")
        lines.append(f"| `{name}` | {asks}{' (no handler)' if name in WITHOUT_HANDLER else ''} | {rule.shows} |")
    return "\n".join(lines) + "\n"
