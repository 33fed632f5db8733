"""The format `hive_acid` for programs of Spark 4 that run no Python of their own: spark-sql, the Thrift server, Scala, Spark Connect.

Spark loads top-level modules with the prefix `pyspark_`. The format is available if the environment of Spark's driver names the metastore:

    export METASTORE_URI=thrift://HOST:9083
    spark-sql -e "CREATE TEMPORARY VIEW e USING hive_acid OPTIONS (table 'default.emp'); SELECT * FROM e; INSERT INTO e VALUES (1, 'a')"

For Python programs `metastore.spark.enable` and `AcidTable` offer more.
"""

import os

if os.environ.get("METASTORE_URI"):
    try:
        from metastore.spark.local_source import DefaultSource
    except ImportError:  # without this, Spark would have no other formats either: it finds the module and can not load it
        pass
    else:
        __all__ = ["DefaultSource"]
