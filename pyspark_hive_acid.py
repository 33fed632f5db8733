"""The format `hive_acid` for programs of Spark 4 that run no Python of their own: spark-sql, the Thrift server, Scala, Spark Connect.

Spark looks for top-level modules that are called so. The format is there where the environment of Spark's driver names the metastore:

    export METASTORE_URI=thrift://HOST:9083
    spark-sql -e "CREATE TEMPORARY VIEW e USING hive_acid OPTIONS (table 'default.emp'); SELECT * FROM e; INSERT INTO e VALUES (1, 'a')"

In programs of Python `metastore.spark.enable` and `AcidTable` do more.
"""

import os

if os.environ.get("METASTORE_URI"):
    try:
        from metastore.spark.local_source import DefaultSource
    except ImportError:  # a module that Spark finds and can not load would take all other formats away
        pass
    else:
        __all__ = ["DefaultSource"]
