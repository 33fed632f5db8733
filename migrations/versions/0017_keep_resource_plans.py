"""Keep the resource plans of Hive's workload management."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0017"
down_revision = "0014"
branch_labels = None
depends_on = None


def name_type() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql").with_variant(sa.String(length=256), "mysql")


def upgrade() -> None:
    op.create_table(
        "resource_plans",
        sa.Column("namespace", name_type(), nullable=False),
        sa.Column("name", name_type(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False, comment="WMResourcePlanStatus of the interface"),
        sa.Column(
            "body",
            sa.Text().with_variant(mysql.LONGTEXT(), "mysql"),
            nullable=False,
            comment="query parallelism, default pool, pools, triggers, mappings",
        ),
        sa.PrimaryKeyConstraint("namespace", "name", name=op.f("pk_resource_plans")),
    )


def downgrade() -> None:
    op.drop_table("resource_plans")
