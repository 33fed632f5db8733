"""Let PostgreSQL keep notification messages as they are: they are compressed already, and trying again took most of the time of an insert."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE notifications ALTER COLUMN message SET STORAGE EXTERNAL")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE notifications ALTER COLUMN message SET STORAGE EXTENDED")
