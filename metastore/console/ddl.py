"""Write the statement that would create a table, in Hive's SQL. For people: parameters of engines are not translated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from metastore.idl import FieldSchema, StorageDescriptor, Table
from metastore.rules.catalog.table_kinds import is_external
from metastore.rules.values.types import statement_type

COUNTED = frozenset({"numFiles", "numRows", "rawDataSize", "totalSize", "transient_lastDdlTime", "COLUMN_STATS_ACCURATE", "EXTERNAL"})
"""Parameters that are counts, or that the statement expresses otherwise."""


def create_statement(table: Table) -> str:
    """Return the statement."""
    name = f"{_quoted(table.dbName)}.{_quoted(table.tableName)}"
    if table.tableType == "VIRTUAL_VIEW":
        return f"CREATE VIEW {name} AS\n{table.viewExpandedText or table.viewOriginalText or ''};"
    if table.tableType == "MATERIALIZED_VIEW":
        return f"CREATE MATERIALIZED VIEW {name} AS\n{table.viewExpandedText or table.viewOriginalText or ''};"
    sd = table.sd
    parameters = {key: value for key, value in sorted((table.parameters or {}).items()) if key not in COUNTED}
    comment = parameters.pop("comment", None)
    lines = [f"CREATE {'EXTERNAL ' if is_external(table) else ''}TABLE {name} ("]
    lines.append(",\n".join(_columns(sd.cols or [] if sd is not None else [])))
    lines.append(")")
    if comment:
        lines.append(f"COMMENT {_text(comment)}")
    if table.partitionKeys:
        lines.append("PARTITIONED BY (\n" + ",\n".join(_columns(table.partitionKeys)) + "\n)")
    if sd is not None:
        lines += _storage(sd)
    if parameters:
        lines.append(f"TBLPROPERTIES (\n{_pairs(parameters)}\n)")
    return "\n".join(lines) + ";"


def _storage(sd: StorageDescriptor) -> list[str]:
    lines = []
    if sd.bucketCols:
        order = ""
        if sd.sortCols:
            order = " SORTED BY (" + ", ".join(f"{_quoted(each.col)} {'ASC' if each.order == 1 else 'DESC'}" for each in sd.sortCols) + ")"
        columns = ", ".join(_quoted(each) for each in sd.bucketCols)
        lines.append(f"CLUSTERED BY ({columns}){order} INTO {sd.numBuckets} BUCKETS")
    if sd.serdeInfo is not None and sd.serdeInfo.serializationLib:
        lines.append(f"ROW FORMAT SERDE {_text(sd.serdeInfo.serializationLib)}")
        if sd.serdeInfo.parameters:
            lines.append(f"WITH SERDEPROPERTIES (\n{_pairs(dict(sorted(sd.serdeInfo.parameters.items())))}\n)")
    if sd.inputFormat and sd.outputFormat:
        lines.append(f"STORED AS INPUTFORMAT {_text(sd.inputFormat)}\n  OUTPUTFORMAT {_text(sd.outputFormat)}")
    if sd.location:
        lines.append(f"LOCATION {_text(sd.location)}")
    return lines


def _columns(columns: Iterable[FieldSchema]) -> list[str]:
    return [
        f"  {_quoted(each.name)} {statement_type(each.type)}" + (f" COMMENT {_text(each.comment)}" if each.comment else "")
        for each in columns
    ]


def _pairs(values: Mapping[str, str]) -> str:
    return ",\n".join(f"  {_text(key)} = {_text(value)}" for key, value in values.items())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + (text or "").replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
