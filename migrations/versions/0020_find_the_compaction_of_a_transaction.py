"""Find the entry of the compaction queue that belongs to a transaction, on which its commit is noted."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(op.f("ix_compactions_transaction_id"), "compactions", ["transaction_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_compactions_transaction_id"), "compactions")
