"""The process that Spark forks its Python workers from, with the modules in it that each worker would import for itself.

A worker collects its garbage after each task, which takes a tenth of a second with all of these modules. They are left out of it.
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
