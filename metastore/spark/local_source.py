"""The format `hive_acid` as Spark finds it by itself (`pyspark_hive_acid`): environment and machine give its settings, not a session."""

from __future__ import annotations

import os

from metastore.spark.data_source import HiveAcidDataSource
from metastore.spark.session.zones import local_zone

URI = "METASTORE_URI"


class DefaultSource(HiveAcidDataSource):
    """One transactional table; the option `zone` names the time zone of Spark's JVM where that is not the machine's."""

    @property
    def default_uri(self) -> str:  # type: ignore[override]  # of each process as it runs
        """The metastore that the environment names."""
        return os.environ.get(URI, "")

    @property
    def zone_name(self) -> str:  # type: ignore[override]  # see above
        """The zone of the times in files."""
        return str(self.options.get("zone") or local_zone())
