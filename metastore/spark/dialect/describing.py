"""Describe transactional tables as Hive prints them: DESCRIBE, SHOW CREATE TABLE, SHOW PARTITIONS, TBLPROPERTIES and COLUMNS.

Values are without the blanks by which Hive fills its columns. Source: the output of Hive 4.0.1 (`tests/hive4/test_sql.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from metastore import idl
from metastore.client import Client
from metastore.idl import Partition, StorageDescriptor, Table
from metastore.rules.values.types import statement_type
from metastore.spark.dialect.session import Names, SqlSession
from metastore.spark.dialect.showing import frame, moment, partition_text
from metastore.spark.grammar.statements import Describe, ShowOfTable, ShowTables, Spec
from metastore.spark.grammar.tokens import WrongStatement
from metastore.spark.session.catalog import AcidTableInfo

Row = tuple[str, str, str]
_HEADER = ("col_name", "data_type", "comment")
_BLANK: Row = ("", "", "")
_HIDDEN = ("numFilesErasureCoded",)
_ACCURATE, _COUNTS = "COLUMN_STATS_ACCURATE", ("numFiles", "numRows", "rawDataSize", "totalSize")
_STATISTICS = {_ACCURATE, *_COUNTS, "numFilesErasureCoded", "numPartitions"}


def describe(session: SqlSession, client: Client, info: AcidTableInfo, statement: Describe) -> DataFrame:
    """Return the rows of DESCRIBE for a table, a partition or a column. WrongStatement, WrongColumns for a missing one."""
    if statement.column is not None:
        return _column(session, client, info, statement)
    partition = None if statement.partition is None else _partition(client, info, statement.partition)
    columns = [(each.name, each.type, each.comment or "") for each in info.table.sd.cols]
    keys = [(each.name, each.type, each.comment or "") for each in info.table.partitionKeys or []]
    heading: Row = ("# col_name", "data_type", "comment")
    rows: list[Row] = [heading, *columns] if statement.how == "FORMATTED" else [*columns, *keys]
    if keys:
        rows += [_BLANK, ("# Partition Information", "", ""), heading, *keys]
    if statement.how == "FORMATTED":
        rows += _of_table(info.table, _whole(client, info)) if partition is None else _of_partition(info, partition)
        rows += _storage(info.table.sd if partition is None else partition.sd)
        rows += _constraints(client, info)
    elif statement.how == "EXTENDED":
        kind, text = ("Table", info.table) if partition is None else ("Partition", partition)
        rows += [_BLANK, (f"Detailed {kind} Information", str(text), "")]
    return frame(session, _HEADER, rows)


def _partition(client: Client, info: AcidTableInfo, spec: Spec) -> Partition:
    name = info.existing_partition(client, partition_text({key: spec.get(key) for key in info.partition_columns.names}))
    return client.get_partitions_by_names(info.database, info.name, [name])[0]  # type: ignore[no-any-return]  # any method of the interface


def _whole(client: Client, info: AcidTableInfo) -> dict[str, str]:
    """Return the parameters of a table; the counts of a partitioned one are the sums of its partitions' counts, as Hive shows them."""
    if not info.table.partitionKeys:
        return info.parameters
    partitions = [each.parameters or {} for each in client.get_partitions(info.database, info.name, -1)]
    sums = {name: str(sum(int(each.get(name) or 0) for each in partitions)) for name in _COUNTS}
    exact = {_ACCURATE: '{"BASIC_STATS":"true"}'} if all('"BASIC_STATS":"true"' in each.get(_ACCURATE, "") for each in partitions) else {}
    return {**info.parameters, **sums, "numPartitions": str(len(partitions)), **exact}


def _of_table(table: Table, parameters: dict[str, str]) -> list[Row]:
    owner_type = idl.PrincipalType._VALUES_TO_NAMES.get(table.ownerType or 1, "USER")  # noqa: SLF001  # thriftpy2 has no public name
    return [
        _BLANK,
        ("# Detailed Table Information", "", ""),
        ("Database:", table.dbName, ""),
        ("OwnerType:", owner_type, ""),
        ("Owner:", table.owner or "", ""),
        ("CreateTime:", moment(table.createTime), ""),
        ("LastAccessTime:", moment(table.lastAccessTime), ""),
        ("Retention:", str(table.retention or 0), ""),
        ("Location:", table.sd.location or "", ""),
        ("Table Type:", table.tableType, ""),
        ("Table Parameters:", "", ""),
        *_parameters(parameters),
    ]


def _of_partition(info: AcidTableInfo, partition: Partition) -> list[Row]:
    return [
        _BLANK,
        ("# Detailed Partition Information", "", ""),
        ("Partition Value:", f"[{', '.join(partition.values)}]", ""),
        ("Database:", info.database, ""),
        ("Table:", info.name, ""),
        ("CreateTime:", moment(partition.createTime), ""),
        ("LastAccessTime:", moment(partition.lastAccessTime), ""),
        ("Location:", partition.sd.location, ""),
        ("Partition Parameters:", "", ""),
        *_parameters(partition.parameters),
    ]


def _parameters(parameters: dict[str, str] | None) -> list[Row]:
    return [("", name, value.replace('"', '\\"')) for name, value in sorted((parameters or {}).items()) if name not in _HIDDEN]


def _storage(sd: StorageDescriptor) -> list[Row]:
    sorted_by = ", ".join(f"Order(col:{each.col}, order:{each.order})" for each in sd.sortCols or [])
    rows: list[Row] = [
        _BLANK,
        ("# Storage Information", "", ""),
        ("SerDe Library:", sd.serdeInfo.serializationLib or "", ""),
        ("InputFormat:", sd.inputFormat or "", ""),
        ("OutputFormat:", sd.outputFormat or "", ""),
        ("Compressed:", "Yes" if sd.compressed else "No", ""),
        ("Num Buckets:", str(sd.numBuckets), ""),
        ("Bucket Columns:", f"[{', '.join(sd.bucketCols or [])}]", ""),
        ("Sort Columns:", f"[{sorted_by}]", ""),
    ]
    if sd.serdeInfo.parameters:
        rows += [("Storage Desc Params:", "", ""), *(("", name, value) for name, value in sorted(sd.serdeInfo.parameters.items()))]
    return rows


def _listed(client: Client, info: AcidTableInfo) -> dict[str, Sequence[Any]]:
    """Return the constraints of a table by the methods that list them."""
    place: dict[str, Any] = {"catName": "hive", "db_name": info.database, "tbl_name": info.name}
    foreign = idl.ForeignKeysRequest(catName="hive", foreign_db_name=info.database, foreign_tbl_name=info.name)
    return {
        "primary": client.get_primary_keys(idl.PrimaryKeysRequest(**place)).primaryKeys,
        "foreign": client.get_foreign_keys(foreign).foreignKeys,
        "unique": client.get_unique_constraints(idl.UniqueConstraintsRequest(**place)).uniqueConstraints,
        "not null": client.get_not_null_constraints(idl.NotNullConstraintsRequest(**place)).notNullConstraints,
        "default": client.get_default_constraints(idl.DefaultConstraintsRequest(**place)).defaultConstraints,
        "check": client.get_check_constraints(idl.CheckConstraintsRequest(**place)).checkConstraints,
    }


def _constraints(client: Client, info: AcidTableInfo) -> list[Row]:
    found = _listed(client, info)
    if not any(found.values()):
        return []
    out: list[Row] = [_BLANK, ("# Constraints", "", "")]
    table: Row = ("Table:", info.full_name, "")
    if found["primary"]:
        columns: list[Row] = [("Column Name:", each.column_name, "") for each in found["primary"]]
        out += [_BLANK, ("# Primary Key", "", ""), table, ("Constraint Name:", found["primary"][0].pk_name, ""), *columns]
    if found["foreign"]:
        out += [_BLANK, ("# Foreign Keys", "", ""), table]
        for each in found["foreign"]:
            parent = f"Parent Column Name:{each.pktable_db}.{each.pktable_name}.{each.pkcolumn_name}"
            out += [
                ("Constraint Name:", each.fk_name, ""),
                (parent, f"Column Name:{each.fkcolumn_name}", f"Key Sequence:{each.key_seq}"),
                _BLANK,
            ]
    if found["unique"]:
        out += [_BLANK, ("# Unique Constraints", "", ""), table]
        for each in found["unique"]:
            out += [("Constraint Name:", each.uk_name, ""), (f"Column Name:{each.column_name}", f"Key Sequence:{each.key_seq}", ""), _BLANK]
    if found["not null"]:
        out += [_BLANK, ("# Not Null Constraints", "", ""), table]
        for each in found["not null"]:
            out += [("Constraint Name:", each.nn_name, ""), ("Column Name:", each.column_name, ""), _BLANK]
    if found["default"]:
        out += [_BLANK, ("# Default Constraints", "", ""), table]
        for each in found["default"]:
            out += [
                ("Constraint Name:", each.dc_name, ""),
                (f"Column Name:{each.column_name}", f"Default Value:{each.default_value}", ""),
                _BLANK,
            ]
    if found["check"]:
        out += [_BLANK, ("# Check Constraints", "", ""), table]
        for each in found["check"]:
            said = (f"Column Name:{each.column_name or ''}", f"Check Value:{each.check_expression}", "")
            out += [("Constraint Name:", each.dc_name, ""), said, _BLANK]
    return out


def _column(session: SqlSession, client: Client, info: AcidTableInfo, statement: Describe) -> DataFrame:
    name = str(statement.column).lower()
    every = [*info.table.sd.cols, *(info.table.partitionKeys or [])]
    column = next((each for each in every if each.name.lower() == name), None)
    if column is None:
        raise WrongStatement(f"{info.full_name} has no column {statement.column}; its columns are {', '.join(each.name for each in every)}")
    if not statement.how:
        return frame(session, _HEADER, [(column.name, column.type, column.comment or "")])
    request = idl.TableStatsRequest(dbName=info.database, tblName=info.name, colNames=[name], engine="hive", catName="hive")
    found = client.get_table_statistics_req(request).tableStats if not info.table.partitionKeys else []
    data = (
        next((vars(found[0].statsData)[field] for field in vars(found[0].statsData) if vars(found[0].statsData)[field] is not None), None)
        if found
        else None
    )

    def said(*fields: str) -> str:
        value = next((found for field in fields if (found := getattr(data, field, None)) is not None), None)
        return "" if value is None else str(value)

    rows = [
        ("col_name", column.name),
        ("data_type", column.type),
        ("min", said("lowValue")),
        ("max", said("highValue")),
        ("num_nulls", said("numNulls")),
        ("distinct_count", said("numDVs")),
        ("avg_col_len", said("avgColLen")),
        ("max_col_len", said("maxColLen")),
        ("num_trues", said("numTrues")),
        ("num_falses", said("numFalses")),
        ("comment", column.comment or ""),
    ]
    return frame(session, ("column_property", "value"), rows)


def show(session: SqlSession, client: Client, info: AcidTableInfo, statement: ShowOfTable) -> DataFrame:
    """Return the rows of a SHOW of one table. WrongStatement for partitions of a table without any."""
    if statement.what == "CREATE TABLE":
        return frame(session, ("createtab_stmt",), [(create_text(client, info, whole=len(statement.table) > 1),)])
    if statement.what == "TBLPROPERTIES":
        rows = sorted(info.parameters.items())
        if (key := statement.key) is not None:
            rows = [(key, info.parameters.get(key, f"Table {info.full_name} does not have property: {key}"))]
        return frame(session, ("key", "value"), rows)
    if statement.what == "COLUMNS":
        return frame(session, ("col_name",), [(name,) for name in info.schema.names])
    if not info.table.partitionKeys:
        raise WrongStatement(f"{info.full_name} is not partitioned")
    names = sorted(client.get_partition_names(info.database, info.name, -1))
    wanted = {f"{key}={value}" for key, value in (statement.partition or {}).items()}
    return frame(session, ("partition",), [(name,) for name in names if wanted <= set(name.split("/"))])


def tables(session: SqlSession, names: Names, statement: ShowTables) -> DataFrame | None:
    """Return the rows of SHOW TABLE EXTENDED, in Spark's words; None where Spark can answer."""
    found = names.tables(statement.database, statement.pattern)
    if found is None:
        return None
    rows = [(info.database, info.name, False, _information(info)) for info in sorted(found, key=lambda info: info.name)]
    return session.spark.createDataFrame(rows, "namespace string, tableName string, isTemporary boolean, information string")


_SPARKS_TYPES = {"MANAGED_TABLE": "MANAGED", "EXTERNAL_TABLE": "EXTERNAL", "VIRTUAL_VIEW": "VIEW"}


def _information(info: AcidTableInfo) -> str:
    table = info.table
    said = {
        "Database": info.database,
        "Table": info.name,
        "Owner": table.owner or "",
        "Created Time": moment(table.createTime),
        "Type": _SPARKS_TYPES.get(table.tableType, table.tableType),
        "Provider": info.parameters.get("spark.sql.sources.provider", "hive"),
        "Table Properties": f"[{', '.join(f'{name}={value}' for name, value in sorted(info.parameters.items()))}]",
        "Location": table.sd.location or "",
        "Partition Columns": f"[{', '.join(f'`{key.name}`' for key in table.partitionKeys or [])}]",
    }
    columns = [f" |-- {each.name}: {each.type} (nullable = true)" for each in [*table.sd.cols, *(table.partitionKeys or [])]]
    return "\n".join([*(f"{name}: {value}" for name, value in said.items()), "Schema: root", *columns, ""])


def create_text(client: Client, info: AcidTableInfo, *, whole: bool) -> str:
    """Return the CREATE TABLE that makes such a table, its constraints included; `whole` names the database."""
    table, sd = info.table, info.table.sd
    found = _listed(client, info)
    columns = [_column_text(each.name, each.type, each.comment, _of_column(found, each.name)) for each in sd.cols]
    name = f"`{info.database}`.`{info.name}`" if whole else f"`{info.name}`"
    lines = [f"CREATE TABLE {name}(", ", \n".join(f"  {each}" for each in [*columns, *_keys_text(found)]) + ")"]
    if comment := info.parameters.get("comment"):
        lines.append(f"COMMENT {_text(comment)}")
    if table.partitionKeys:
        keys = [_column_text(each.name, each.type, each.comment, _of_column(found, each.name)) for each in table.partitionKeys]
        lines += ["PARTITIONED BY ( ", ", \n".join(f"  {each}" for each in keys) + ")"]
    if info.buckets:
        lines += ["CLUSTERED BY (", ", \n".join(f"  `{each}`" for each in info.bucket_columns) + ")"]
        if sd.sortCols:
            order = ", \n".join(f"  `{each.col}` {'ASC' if each.order else 'DESC'}" for each in sd.sortCols)
            lines += ["SORTED BY (", f"{order})"]
        lines.append(f"INTO {info.buckets} BUCKETS")
    lines += ["ROW FORMAT SERDE ", f"  {_text(sd.serdeInfo.serializationLib)} "]
    if more := {key: value for key, value in (sd.serdeInfo.parameters or {}).items() if (key, value) != ("serialization.format", "1")}:
        lines += ["WITH SERDEPROPERTIES (", _properties(more)]
    lines += ["STORED AS INPUTFORMAT ", f"  {_text(sd.inputFormat)} ", "OUTPUTFORMAT ", f"  {_text(sd.outputFormat)}"]
    lines += ["LOCATION", f"  {_text(sd.location)}"]
    kept = {key: value for key, value in info.parameters.items() if key not in {*_STATISTICS, "comment"}}
    return "\n".join([*lines, "TBLPROPERTIES (", _properties(kept)])


def _column_text(name: str, kind: str, comment: str | None, constraints: str) -> str:
    return f"`{name.replace('`', '``')}` {statement_type(kind)}{constraints}{'' if not comment else f' COMMENT {_text(comment)}'}"


def _options(each: Any) -> str:
    words = (
        "ENABLE" if each.enable_cstr else "DISABLE",
        "VALIDATE" if each.validate_cstr else "NOVALIDATE",
        "RELY" if each.rely_cstr else "NORELY",
    )
    return " ".join(words)


def _of_column(found: dict[str, Sequence[Any]], name: str) -> str:
    """Return the constraints on one column, as they are written behind it."""
    out = ""
    for each in found["not null"]:
        out += f" CONSTRAINT `{each.nn_name}` NOT NULL {_options(each)}" if each.column_name == name else ""
    for each in found["default"]:
        out += f" CONSTRAINT `{each.dc_name}` DEFAULT {each.default_value} {_options(each)}" if each.column_name == name else ""
    return out


def _keys_text(found: dict[str, Sequence[Any]]) -> list[str]:
    """Return the constraints on the whole table."""
    out = []
    for kind, words, name in (("primary", "PRIMARY KEY", "pk_name"), ("unique", "UNIQUE", "uk_name")):
        for key in dict.fromkeys(getattr(each, name) for each in found[kind]):
            of_key = [each for each in found[kind] if getattr(each, name) == key]
            out.append(f"CONSTRAINT `{key}` {words} ({', '.join(f'`{each.column_name}`' for each in of_key)}) {_options(of_key[0])}")
    for key in dict.fromkeys(each.fk_name for each in found["foreign"]):
        of_key = [each for each in found["foreign"] if each.fk_name == key]
        own, there = (", ".join(f"`{getattr(each, field)}`" for each in of_key) for field in ("fkcolumn_name", "pkcolumn_name"))
        parent = f"`{of_key[0].pktable_db}`.`{of_key[0].pktable_name}`"
        out.append(f"CONSTRAINT `{key}` FOREIGN KEY ({own}) REFERENCES {parent} ({there}) {_options(of_key[0])}")
    return out + [f"CONSTRAINT `{each.dc_name}` CHECK ({each.check_expression}) {_options(each)}" for each in found["check"]]


def _properties(parameters: dict[str, str]) -> str:
    return ", \n".join(f"  {_text(name)}={_text(value)}" for name, value in sorted(parameters.items())) + ")"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
