"""Keep with a table's counter the commit id of its last change, so that the next one need not look for it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "write_id_counters",
        sa.Column(
            "last_change",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="the highest commit id in write_set of a change of the table as a whole, or above it (MariaDB)",
        ),
    )
    counters = sa.table("counters", sa.column("name"), sa.column("value"))
    last = sa.select(counters.c.value).where(counters.c.name == "transaction").scalar_subquery()
    of_table = sa.table("write_id_counters", sa.column("last_change"))
    op.execute(sa.update(of_table).values(last_change=sa.func.coalesce(last, 0)))


def downgrade() -> None:
    with op.batch_alter_table("write_id_counters") as changed:
        changed.drop_column("last_change")
