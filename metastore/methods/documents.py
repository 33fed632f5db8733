"""Write docs/methods.md and docs/privileges.md out of the entries of the methods."""

from __future__ import annotations

from metastore.methods import METHODS
from metastore.methods.forms.rules import OPEN


def methods() -> str:
    """Return the text of docs/methods.md."""
    lines = [
        "# Methods",
        "",
        "Every method of the interface, and whether it reads or changes something. Calls that change something have a line in the",
        "[audit log](audit.md). A [replica](databases.md#read-from-a-replica), if one is set, may answer the marked methods. A",
        "[shadow](shadow.md) sends reads to the secondary too, and changes with `--send-changes`, except as marked.",
        "Generated: `python -m metastore.methods methods > docs/methods.md`.",
        "",
        f"{len(METHODS)} methods.",
        "",
        "| method | | replica | shadow | |",
        "|---|---|---|---|---|",
    ]
    for name in sorted(METHODS, key=str.lower):
        each = METHODS[name]
        dead = f"a dead feature: {each.dead}" if each.dead else ""
        kind, replica = "changes" if each.changes else "reads", "yes" if each.replica else ""
        lines.append(f"| `{name}` | {kind} | {replica} | {each.shadowed.value} | {dead} |")
    return "\n".join(lines) + "\n"


def privileges() -> str:
    """Return the text of docs/privileges.md."""
    lines = [
        "# Privileges by method",
        "",
        "The privileges that each method of the interface needs where [authorization](authorization.md) is on, and the shown part of its",
        "reply. *Any privilege* on a table makes it visible. A method that names an object which its caller may not see answers as for a",
        "missing one. The owner of an object may do everything with it, the role `admin` everything.",
        "Generated: `python -m metastore.methods privileges > docs/privileges.md`.",
        "",
        "| method | needs | shows |",
        "|---|---|---|",
    ]
    for name in sorted(METHODS, key=str.lower):
        rule = METHODS[name].rule
        asks = "; ".join(ask.text for ask in rule.asks) or ("nothing" if rule is OPEN or rule.shows else "")
        lines.append(f"| `{name}` | {asks} | {rule.shows} |")
    return "\n".join(lines) + "\n"
