"""The way to a database: sessions, pool, compiled statements, caches, leases, migrations."""
