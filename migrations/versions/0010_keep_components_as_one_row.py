"""Keep each component of a transaction as one row, from its declaration until its compaction: a commit notes its time and id in the row.

Before, a commit copied the component to two other tables: one for the judgement of conflicts, and one for the start of compactions.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

OBJECT = ("catalog", "database", "table", "partition")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LAST_CHANGE = "the highest commit id of a change of the table as a whole, or above it (MariaDB)"
LAST_CHANGE_BEFORE = "the highest commit id in write_set of a change of the table as a whole, or above it (MariaDB)"

components = sa.table(
    "transaction_components", *map(sa.column, ("transaction_id", *OBJECT, "operation", "write_id", "committed_ms", "commit_id"))
)
completed = sa.table("completed_components", *map(sa.column, ("transaction_id", *OBJECT, "write_id", "updates", "time_ms")))
write_set = sa.table("write_set", *map(sa.column, (*OBJECT, "transaction_id", "commit_id", "operation")))
C, D, W = components.c, completed.c, write_set.c


def name_type(length: int) -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.String(length=length), "mysql").with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column(
        "transaction_components",
        sa.Column("committed_ms", sa.BigInteger(), comment="when the transaction committed; no value before, nor if it aborted"),
    )
    op.add_column(
        "transaction_components",
        sa.Column("commit_id", sa.BigInteger(), comment="of a committed update or delete: the last transaction id given out by then"),
    )
    op.drop_index(op.f("ix_completed_components_database_table"), "completed_components")
    op.drop_index(op.f("ix_write_set_database_table"), "write_set")
    if sa.inspect(op.get_bind()).has_table("completed_components"):
        _move()
    op.drop_table("completed_components")
    op.drop_table("write_set")
    op.create_index(
        op.f("ix_transaction_components_database_table_commit_id"), "transaction_components", ["database", "table", "commit_id"]
    )
    op.drop_index(op.f("ix_transaction_components_database_table"), "transaction_components")
    _comment(LAST_CHANGE, LAST_CHANGE_BEFORE)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE transaction_components SET (fillfactor = 70)")


def _move() -> None:
    op.create_index("write_set_transaction_id", "write_set", ["transaction_id"])  # or each row would be compared with all of its table
    table = sa.func.nullif(W.table, "")
    same = sa.and_(
        D.transaction_id == W.transaction_id,
        D.updates == 1,
        D.catalog == W.catalog,
        D.database == W.database,
        sa.func.coalesce(D.table, "") == W.table,
        D.partition.is_not_distinct_from(W.partition),
    )
    zero = sa.literal_column("0")
    changes = sa.select(
        W.transaction_id,
        W.catalog,
        W.database,
        table,
        W.partition,
        W.operation,
        sa.func.coalesce(D.write_id, zero),
        sa.func.coalesce(D.time_ms, zero),
        W.commit_id,
    ).select_from(write_set.outerjoin(completed, same))
    rest = sa.select(
        D.transaction_id,
        *(D[name] for name in OBJECT),
        sa.case((D.updates == 1, "u"), else_="i"),
        D.write_id,
        D.time_ms,
    ).where(~sa.exists(sa.select(sa.literal_column("1")).where(same)))
    names = ["transaction_id", *OBJECT, "operation", "write_id", "committed_ms"]
    op.execute(sa.insert(components).from_select([*names, "commit_id"], changes))
    op.execute(sa.insert(components).from_select(names, rest))
    op.execute(sa.delete(completed))
    op.execute(sa.delete(write_set))


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE transaction_components RESET (fillfactor)")
    _comment(LAST_CHANGE_BEFORE, LAST_CHANGE)
    op.create_index(op.f("ix_transaction_components_database_table"), "transaction_components", ["database", "table"])
    op.drop_index(op.f("ix_transaction_components_database_table_commit_id"), "transaction_components")
    op.create_table(
        "write_set",
        sa.Column("id", ID, nullable=False),
        sa.Column("catalog", name_type(256), nullable=False),
        sa.Column("database", name_type(256), nullable=False),
        sa.Column("table", name_type(256), nullable=False),
        sa.Column("partition", name_type(766)),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.BigInteger(), nullable=False),
        sa.Column("operation", name_type(1), nullable=False, comment="u update, d delete"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_write_set")),
    )
    op.create_table(
        "completed_components",
        sa.Column("id", ID, nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("catalog", name_type(256), nullable=False),
        sa.Column("database", name_type(256), nullable=False),
        sa.Column("table", name_type(256)),
        sa.Column("partition", name_type(766)),
        sa.Column("write_id", sa.BigInteger()),
        sa.Column("updates", sa.Integer(), nullable=False, comment="1 when rows were updated or deleted, not only inserted"),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_completed_components")),
    )
    for table, columns in (
        ("write_set", ["database", "table"]),
        ("write_set", ["commit_id"]),
        ("completed_components", ["database", "table"]),
        ("completed_components", ["transaction_id"]),
    ):
        op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, columns)
    if "commit_id" in {each["name"] for each in sa.inspect(op.get_bind()).get_columns("transaction_components")}:
        _move_back()
    with op.batch_alter_table("transaction_components") as changed:
        changed.drop_column("commit_id")
        changed.drop_column("committed_ms")


def _move_back() -> None:
    op.execute(
        sa.insert(write_set).from_select(
            [*OBJECT, "transaction_id", "commit_id", "operation"],
            sa.select(C.catalog, C.database, sa.func.coalesce(C.table, ""), C.partition, C.transaction_id, C.commit_id, C.operation)
            .where(C.commit_id.is_not(None))
            .distinct(),
        )
    )
    op.execute(
        sa.insert(completed).from_select(
            ["transaction_id", *OBJECT, "write_id", "updates", "time_ms"],
            sa.select(
                C.transaction_id, *(C[name] for name in OBJECT), C.write_id, sa.case((C.operation == "i", 0), else_=1), C.committed_ms
            )
            .where(C.committed_ms.is_not(None))
            .distinct(),
        )
    )
    op.execute(sa.delete(components).where(C.committed_ms.is_not(None)))


def _comment(comment: str, before: str) -> None:
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column(
            "write_id_counters",
            "last_change",
            comment=comment,
            existing_comment=before,
            existing_type=sa.BigInteger(),
            existing_nullable=False,
            existing_server_default="0",
        )
