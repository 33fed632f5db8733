"""Keep the server's own users: passwords and keys, hashed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

JSON_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def name_type(length: int) -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.String(length=length), "mysql").with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_name", name_type(256), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("groups", JSON_TEXT, nullable=False),
        sa.Column("comment", JSON_TEXT),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.Column("expire_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_credentials_user_name"), "credentials", ["user_name"])


def downgrade() -> None:
    op.drop_table("credentials")
