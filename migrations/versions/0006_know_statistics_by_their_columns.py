"""Know statistics of a partition by a hash of their columns' names: a client that writes the same columns again replaces them unread."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("partition_statistics", sa.Column("named", sa.BigInteger(), comment="hash of the columns' names"))


def downgrade() -> None:
    with op.batch_alter_table("partition_statistics") as table:
        table.drop_column("named")
