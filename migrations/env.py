"""Run the migrations on the connection that `metastore.store.migrate` hands over."""

from alembic import context

from metastore.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
