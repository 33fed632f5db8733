"""Keep the resource plans of Hive's workload management, and the indexes of Hive 2.3."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")


def name_type() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql").with_variant(sa.String(length=256), "mysql")


def upgrade() -> None:
    op.create_table(
        "resource_plans",
        sa.Column("namespace", name_type(), nullable=False),
        sa.Column("name", name_type(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False, comment="WMResourcePlanStatus of the interface"),
        sa.Column("body", JSON_TEXT, nullable=False, comment="query parallelism, default pool, pools, triggers, mappings"),
        sa.PrimaryKeyConstraint("namespace", "name", name=op.f("pk_resource_plans")),
    )
    op.create_table(
        "indexes",
        sa.Column("table_id", ID, autoincrement=False, nullable=False),
        sa.Column("name", name_type(), nullable=False),
        sa.Column("index_table_id", ID, nullable=False, comment="the table that holds what the index knows"),
        sa.Column("body", JSON_TEXT, nullable=False, comment="class, times, parameters and storage descriptor"),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=op.f("fk_indexes_table_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["index_table_id"], ["tables.id"], name=op.f("fk_indexes_index_table_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", "name", name=op.f("pk_indexes")),
        sa.UniqueConstraint("index_table_id", name=op.f("uq_indexes_index_table_id")),
    )


def downgrade() -> None:
    op.drop_table("indexes")
    op.drop_table("resource_plans")
