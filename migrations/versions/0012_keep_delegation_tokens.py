"""Keep delegation tokens, and the tokens and master keys that other servers keep here."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

JSON_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def name_type(length: int) -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.String(length=length), "mysql").with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "delegation_tokens",
        sa.Column("hash", name_type(64), nullable=False, comment="SHA-256 of the identifier"),
        sa.Column("password", sa.Text(), nullable=False),
        sa.Column("owner", name_type(256), nullable=False),
        sa.Column("renewer", name_type(256), nullable=False),
        sa.Column("real_user", name_type(256), nullable=False),
        sa.Column("valid_until", sa.BigInteger(), nullable=False),
        sa.Column("max_date", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_delegation_tokens")),
    )
    op.create_index(op.f("ix_delegation_tokens_max_date"), "delegation_tokens", ["max_date"])
    op.create_table(
        "foreign_tokens",
        sa.Column("hash", name_type(64), nullable=False, comment="SHA-256 of the identifier"),
        sa.Column("identifier", JSON_TEXT, nullable=False),
        sa.Column("token", JSON_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_foreign_tokens")),
    )
    op.create_table(
        "foreign_master_keys",
        sa.Column("id", ID, nullable=False),
        sa.Column("body", JSON_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_foreign_master_keys")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    for table in ("foreign_master_keys", "foreign_tokens", "delegation_tokens"):
        op.drop_table(table)
