"""The pipeline logs in as the environment says, its heartbeats too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install metastore[kerberos]")
pytest.importorskip("k5test", reason="for a KDC")

from metastore.client_login import LoginError
from metastore.idl import CreateTableRequest
from metastore.spark import AcidTable
from metastore.spark.catalog import CAPABILITIES
from tests.support.acid_tables import definition
from tests.support.kdc import Kdc
from tests.support.secured import Secured


def test_a_table_is_changed_with_a_token(spark: SparkSession, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secured = Secured(kdc, tmp_path / "home")
    with secured.serve(warehouse=f"{tmp_path}/warehouse"):
        with secured.kerberos() as client:
            made = definition("t", "id int, name string")
            client.create_table_req(CreateTableRequest(table=made, processorCapabilities=CAPABILITIES, processorIdentifier="tests"))
            token = client.get_delegation_token("alice", "alice")
        monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "token")
        monkeypatch.setenv("METASTORE_CLIENT_TOKEN", token)
        table = AcidTable.forName(spark, "default.t", secured.uri)
        table.insert(spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string"))
        table.update("id = 2", {"name": "'changed'"})
        table.delete("id = 1")
        assert [tuple(row) for row in table.toDF().collect()] == [(2, "changed")]
        table.close()
        monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "none")
        with pytest.raises(Exception, match="This server asks for a login"):
            AcidTable.forName(spark, "default.t", secured.uri)
        monkeypatch.setenv("METASTORE_CLIENT_LOGIN", "token")
        monkeypatch.setenv("METASTORE_CLIENT_TOKEN", "AAAA")
        with pytest.raises(LoginError, match="no delegation token"):
            AcidTable.forName(spark, "default.t", secured.uri)
