"""Keep schemas of databases, their versions with columns, and the serdes that read them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

JSON_TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def name_type(length: int) -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.String(length=length), "mysql").with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "registry_schemas",
        sa.Column("id", ID, nullable=False),
        sa.Column("database_id", ID, nullable=False),
        sa.Column("name", name_type(256), nullable=False),
        sa.Column("type", sa.Integer(), comment="SchemaType of the interface"),
        sa.Column("compatibility", sa.Integer(), comment="SchemaCompatibility of the interface"),
        sa.Column("validation_level", sa.Integer(), comment="SchemaValidation of the interface"),
        sa.Column("can_evolve", sa.Integer()),
        sa.Column("schema_group", JSON_TEXT),
        sa.Column("description", JSON_TEXT),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_registry_schemas")),
        sa.UniqueConstraint("database_id", "name", name=op.f("uq_registry_schemas_database_id_name")),
    )
    op.create_table(
        "registry_versions",
        sa.Column("id", ID, nullable=False),
        sa.Column("schema_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Integer(), comment="SchemaVersionState of the interface"),
        sa.Column("description", JSON_TEXT),
        sa.Column("schema_text", JSON_TEXT),
        sa.Column("fingerprint", JSON_TEXT),
        sa.Column("name", JSON_TEXT),
        sa.Column("serde", JSON_TEXT, comment="SerDeInfo as JSON"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_registry_versions")),
        sa.UniqueConstraint("schema_id", "version", name=op.f("uq_registry_versions_schema_id_version")),
    )
    op.create_table(
        "registry_columns",
        sa.Column("version_id", ID, autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", name_type(766), nullable=False),
        sa.Column("type", JSON_TEXT),
        sa.Column("comment", JSON_TEXT, comment="the column's namespace"),
        sa.PrimaryKeyConstraint("version_id", "position", name=op.f("pk_registry_columns")),
    )
    op.create_index(op.f("ix_registry_columns_name"), "registry_columns", ["name"])
    op.create_table(
        "serdes",
        sa.Column("name", name_type(256), nullable=False),
        sa.Column("serde", JSON_TEXT, nullable=False, comment="SerDeInfo as JSON"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_serdes")),
    )


def downgrade() -> None:
    for table in ("serdes", "registry_columns", "registry_versions", "registry_schemas"):
        op.drop_table(table)
