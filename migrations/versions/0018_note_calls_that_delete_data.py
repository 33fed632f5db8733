"""Note which calls that take data away were committed, so that the data of one that was killed is put back or deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deletions",
        sa.Column(
            "number",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql").with_variant(sa.String(length=64), "mysql"),
            nullable=False,
            comment="of a call that takes data away; begins with the time in milliseconds",
        ),
        sa.Column("taken_back", sa.Integer(), nullable=False, comment="1 where the call was not committed, and its data was put back"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deletions")),
    )


def downgrade() -> None:
    op.drop_table("deletions")
