"""Find the objects whose data is in a directory. A deletion asks for its other owners, and read the locations of all objects before.

A place is the one text of all spellings of a location, cut to the length that every database can index. Partitions at their table's place
and their own name have no place of their own: they are found by the table and the name.
"""

import sqlalchemy as sa
from alembic import op

from metastore.places import LENGTH, place_of

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COLUMNS = (("databases", "place", "location"), ("databases", "managed_place", "managed_location"), ("tables", "place", "location"))
BATCH = 5000


def place_type() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.String(length=LENGTH), "mysql").with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    for table, column, _ in COLUMNS:
        op.add_column(table, sa.Column(column, place_type(), comment="one text for all spellings of the location"))
    op.add_column("partitions", sa.Column("place", place_type(), comment="no value at the table's place and the own name"))
    for table, column, location in COLUMNS:
        _fill_column(table, column, location)
    _fill_partitions()
    for table, column, _ in COLUMNS:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])
    with_place = sa.text("place IS NOT NULL")
    op.create_index(op.f("ix_partitions_place"), "partitions", ["place"], postgresql_where=with_place, sqlite_where=with_place)


def _fill_column(name: str, column: str, location: str) -> None:
    connection, table = op.get_bind(), sa.table(name, *map(sa.column, ("id", column, location)))
    rows = sa.select(table.c.id, table.c[location]).where(table.c[location].is_not(None), table.c.id > sa.bindparam("after"))
    change = sa.update(table).where(table.c.id == sa.bindparam("key")).values({column: sa.bindparam("text")})
    _fill(connection, rows.order_by(table.c.id).limit(BATCH), change, lambda row: place_of(row[1]))


def _fill_partitions() -> None:
    partitions = sa.table("partitions", *map(sa.column, ("id", "table_id", "name", "location", "place")))
    tables = sa.table("tables", *map(sa.column, ("id", "location")))
    p, t = partitions.c, tables.c
    rows = (
        sa.select(p.id, p.location, t.location)
        .select_from(partitions.join(tables, p.table_id == t.id))
        .where(p.location != sa.literal_column("'./'", sa.Text()) + p.name, p.id > sa.bindparam("after"))
    )
    change = sa.update(partitions).where(p.id == sa.bindparam("key")).values(place=sa.bindparam("text"))

    def place(row: sa.Row) -> str:
        _, location, base = row
        return place_of((base or "") + location[1:] if location.startswith("./") else location) or ""

    _fill(op.get_bind(), rows.order_by(p.id).limit(BATCH), change, place)


def _fill(connection, rows, change, place) -> None:
    last = 0
    while found := connection.execute(rows, {"after": last}).all():
        last = found[-1][0]
        texts = [(row[0], place(row)) for row in found]
        changes = [{"key": key, "text": text[:LENGTH]} for key, text in texts if text is not None]
        if changes:
            connection.execute(change, changes)


def downgrade() -> None:
    op.drop_index(op.f("ix_partitions_place"), "partitions")
    for table, column, _ in COLUMNS:
        op.drop_index(op.f(f"ix_{table}_{column}"), table)
    for table, columns in (("partitions", ["place"]), ("tables", ["place"]), ("databases", ["place", "managed_place"])):
        with op.batch_alter_table(table) as changed:
            for column in columns:
                changed.drop_column(column)
