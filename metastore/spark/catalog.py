"""Tables as the metastore describes them, under their public names: the capabilities that writers of transactional tables send."""

from metastore.acid.folders.table import CAPABILITIES
from metastore.spark.session.catalog import AcidTableInfo, metastore_uri

__all__ = ["CAPABILITIES", "AcidTableInfo", "metastore_uri"]
