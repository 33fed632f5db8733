"""Find locks by their types: a reader waits for no other reader, and one table may have hundreds of readers."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLE, NEW, OLD = "lock_components", "ix_lock_components_database_table_type", "ix_lock_components_database_table"


def upgrade() -> None:
    op.create_index(op.f(NEW), TABLE, ["database", "table", "type"])
    op.drop_index(op.f(OLD), TABLE)


def downgrade() -> None:
    op.create_index(op.f(OLD), TABLE, ["database", "table"])
    op.drop_index(op.f(NEW), TABLE)
