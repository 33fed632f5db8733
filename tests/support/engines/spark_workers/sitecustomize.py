"""Make the Python processes of Spark's tasks import PySpark from its installed folder. Python loads this file at its start.

Spark puts `spark-core.jar` and `pyspark.zip` into their path, and each task reads the directories of both again, which takes 70 ms.
"""

import sys

ARCHIVES = [each for each in sys.path if each.endswith((".jar", ".zip"))]
sys.path[:] = [each for each in sys.path if each not in ARCHIVES]
for archive in ARCHIVES:
    sys.path_importer_cache.pop(archive, None)
