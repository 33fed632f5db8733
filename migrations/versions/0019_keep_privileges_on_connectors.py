"""Keep privileges on data connectors, which are referred to by their names."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def name_type() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql").with_variant(sa.String(length=256), "mysql")


def upgrade() -> None:
    op.add_column("privileges", sa.Column("connector_name", name_type(), nullable=True))
    op.create_index(op.f("ix_privileges_connector_name"), "privileges", ["connector_name"])


def downgrade() -> None:
    op.execute("DELETE FROM privileges WHERE object_type = 6")
    op.drop_index(op.f("ix_privileges_connector_name"), "privileges")
    op.drop_column("privileges", "connector_name")
