"""Find what readers and writes left of a table by its name: who drops or renames one read all of it, a day's writes of all tables."""

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
