"""Count in a lock queue the changes that may make readers and writers wait: while the count stays, they need not look for such locks."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "lock_queues",
        sa.Column(
            "changes",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="how often an exclusive lock was added (MariaDB), or write ids of a table went to another name or away",
        ),
    )


def downgrade() -> None:
    with op.batch_alter_table("lock_queues") as changed:
        changed.drop_column("changes")
