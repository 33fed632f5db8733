"""Find the readers' history and the noted writes of a table by its name. A drop or rename read those of all tables, of a whole day."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = ("min_history", "write_notifications")


def upgrade() -> None:
    for table in TABLES:
        op.create_index(op.f(f"ix_{table}_database_table"), table, ["database", "table"])


def downgrade() -> None:
    for table in TABLES:
        op.drop_index(op.f(f"ix_{table}_database_table"), table)
