"""The process from which Spark forks its Python workers. It has imported the modules that each worker would import.

A worker collects its garbage after each task, which takes a tenth of a second with all these modules. They are excluded from that.
"""

import gc
import importlib
from contextlib import suppress

from pyspark import daemon

IMPORTED = (
    "pandas",
    "pytest",
    "pyarrow.orc",
    "pyarrow.parquet",
    "pyspark.sql.pandas.serializers",
    "metastore.spark.data_source",
    "metastore.spark.reading.reading",
    "metastore.acid.orc.orc_files",
    "metastore.acid.rewriting.parquet_files",
    "tests.support.acid.acid_tables",
    "tests.support.servers.servers",
)

if __name__ == "__main__":
    for name in IMPORTED:
        with suppress(ImportError):  # Spark 3.5 has no data sources in Python
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    daemon.manager()
