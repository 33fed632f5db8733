"""Keep the locations that a principal may use."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def name_type() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql").with_variant(sa.String(length=256), "mysql")


def upgrade() -> None:
    op.create_table(
        "location_grants",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("principal_name", name_type(), nullable=False),
        sa.Column("principal_type", sa.Integer(), nullable=False),
        sa.Column(
            "location",
            sa.Text().with_variant(mysql.LONGTEXT(), "mysql"),
            nullable=False,
            comment="the principal may use it and what lies below it",
        ),
    )
    op.create_index(op.f("ix_location_grants_principal_name"), "location_grants", ["principal_name"])


def downgrade() -> None:
    op.drop_table("location_grants")
