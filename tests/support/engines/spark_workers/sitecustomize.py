"""Loaded at the start of the Python processes that Spark's tasks run in: they take PySpark from where it is installed.

Spark puts `spark-core.jar` and `pyspark.zip` into their path, and each task reads the directories of both again: 70 ms of it.
"""

import sys

ARCHIVES = [each for each in sys.path if each.endswith((".jar", ".zip"))]
sys.path[:] = [each for each in sys.path if each not in ARCHIVES]
for archive in ARCHIVES:
    sys.path_importer_cache.pop(archive, None)
