"""Keep data connectors, scheduled queries, runtime statistics, replication metrics, procedures, packages and properties."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

JSON_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def name_type(length: int) -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.String(length=length), "mysql").with_variant(sa.Text(collation="C"), "postgresql")


NAME = name_type(256)


def index(table: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns))


def in_database(table: str, *columns: sa.Column[str]) -> None:
    op.create_table(
        table,
        sa.Column("id", ID, nullable=False),
        sa.Column("database_id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("owner_name", NAME),
        *columns,
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name=op.f(f"fk_{table}_database_id")),
        sa.UniqueConstraint("database_id", "name", name=op.f(f"uq_{table}_database_id_name")),
    )


def upgrade() -> None:
    op.create_table(
        "data_connectors",
        sa.Column("name", NAME, nullable=False),
        sa.Column("type", JSON_TEXT),
        sa.Column("url", JSON_TEXT),
        sa.Column("description", JSON_TEXT),
        sa.Column("parameters", JSON_TEXT, nullable=False),
        sa.Column("owner_name", NAME),
        sa.Column("owner_type", sa.Integer()),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_data_connectors")),
    )
    scheduled()
    measured()
    in_database("procedures", sa.Column("source", JSON_TEXT, nullable=False))
    in_database("packages", sa.Column("header", JSON_TEXT, nullable=False), sa.Column("body", JSON_TEXT, nullable=False))
    op.create_table(
        "properties",
        sa.Column("map", name_type(300), nullable=False, comment="the name space and up to three parts of the key, with dots"),
        sa.Column("name", name_type(300), nullable=False),
        sa.Column("value", JSON_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("map", "name", name=op.f("pk_properties")),
    )


def scheduled() -> None:
    op.create_table(
        "scheduled_queries",
        sa.Column("id", ID, nullable=False),
        sa.Column("namespace", NAME, nullable=False, comment="of the cluster that runs it"),
        sa.Column("name", NAME, nullable=False),
        sa.Column("enabled", sa.Integer(), nullable=False),
        sa.Column("schedule", JSON_TEXT, nullable=False, comment="as Quartz writes it"),
        sa.Column("user", NAME),
        sa.Column("query", JSON_TEXT, nullable=False),
        sa.Column("next_time", sa.BigInteger(), comment="when it is due; no value for never"),
        sa.Column("execution_id", sa.BigInteger(), comment="of the execution that is under way"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scheduled_queries")),
        sa.UniqueConstraint("namespace", "name", name=op.f("uq_scheduled_queries_namespace_name")),
        sqlite_autoincrement=True,
    )
    index("scheduled_queries", "namespace", "next_time")
    op.create_table(
        "scheduled_executions",
        sa.Column("id", ID, nullable=False),
        sa.Column("query_id", ID, nullable=False),
        sa.Column("state", sa.Integer(), nullable=False, comment="QueryState of the interface"),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.Column("end_time", sa.BigInteger()),
        sa.Column("report_time", sa.BigInteger(), comment="when its executor reported last; no value once it has ended"),
        sa.Column("executor_query_id", JSON_TEXT),
        sa.Column("error", JSON_TEXT),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scheduled_executions")),
        sa.ForeignKeyConstraint(["query_id"], ["scheduled_queries.id"], name=op.f("fk_scheduled_executions_query_id"), ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    for column in ("query_id", "report_time", "start_time"):
        index("scheduled_executions", column)


def measured() -> None:
    op.create_table(
        "runtime_statistics",
        sa.Column("id", ID, nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("weight", sa.BigInteger(), nullable=False),
        sa.Column("payload", JSON_TEXT, nullable=False, comment="base64"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runtime_statistics")),
        sqlite_autoincrement=True,
    )
    index("runtime_statistics", "create_time")
    op.create_table(
        "replication_metrics",
        sa.Column("execution_id", sa.BigInteger(), autoincrement=False, nullable=False, comment="of the scheduled query"),
        sa.Column("policy", NAME, nullable=False),
        sa.Column("dump_execution_id", sa.BigInteger(), nullable=False),
        sa.Column("metadata", JSON_TEXT),
        sa.Column("progress", JSON_TEXT),
        sa.Column("message_format", JSON_TEXT),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", name=op.f("pk_replication_metrics")),
    )
    for column in ("policy", "start_time"):
        index("replication_metrics", column)


def downgrade() -> None:
    for table in (
        "properties", "packages", "procedures", "replication_metrics", "runtime_statistics", "scheduled_executions", "scheduled_queries",
        "data_connectors",
    ):  # fmt: skip
        op.drop_table(table)
