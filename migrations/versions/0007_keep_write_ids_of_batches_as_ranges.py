"""Keep the write ids of transactions that were opened together as one row for each table, and know the last transaction that has one."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

NAMES = ("catalog", "database", "table")
WRITE_IDS, RANGES = 8, 32
"""Bits of transactions.holds."""


def name_type(length: int) -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.String(length=length), "mysql").with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "write_id_ranges",
        sa.Column("catalog", name_type(128), nullable=False),
        sa.Column("database", name_type(128), nullable=False),
        sa.Column("table", name_type(256), nullable=False),
        sa.Column("last_transaction", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "first_transaction",
            sa.BigInteger(),
            nullable=False,
            comment="its write id is the first, that of each following one is one higher",
        ),
        sa.Column("first_write_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*NAMES, "last_transaction", name=op.f("pk_write_id_ranges")),
    )
    op.add_column(
        "write_id_counters",
        sa.Column(
            "last_transaction",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="no transaction above it has a write id of the table",
        ),
    )
    counters = sa.table("counters", sa.column("name"), sa.column("value"))
    last = sa.select(counters.c.value).where(counters.c.name == "transaction").scalar_subquery()
    of_table = sa.table("write_id_counters", sa.column("last_transaction"))
    op.execute(sa.update(of_table).values(last_transaction=sa.func.coalesce(last, 0)))


def downgrade() -> None:
    if sa.inspect(op.get_bind()).has_table("write_id_ranges"):
        _move_back()
    op.drop_table("write_id_ranges")
    with op.batch_alter_table("write_id_counters") as changed:
        changed.drop_column("last_transaction")


def _move_back() -> None:
    write_ids = sa.table("write_ids", *map(sa.column, ("transaction_id", *NAMES, "write_id")))
    ranges = sa.table("write_id_ranges", *map(sa.column, (*NAMES, "first_transaction", "last_transaction", "first_write_id")))
    transactions = sa.table("transactions", sa.column("id", sa.BigInteger()), sa.column("holds", sa.Integer()))
    holds = transactions.c.holds
    database = op.get_bind()
    for catalog, name, table, first, last, number in database.execute(sa.select(*ranges.c)).all():
        op.bulk_insert(
            write_ids,
            [
                {"transaction_id": id_, "catalog": catalog, "database": name, "table": table, "write_id": number + id_ - first}
                for id_ in range(first, last + 1)
            ],
        )
        op.execute(sa.update(transactions).where(transactions.c.id.between(first, last)).values(holds=holds.bitwise_or(WRITE_IDS)))
    op.execute(sa.update(transactions).where(holds.bitwise_and(RANGES) != 0).values(holds=holds - RANGES))
    op.execute(sa.delete(ranges))
