"""PyIceberg logs in by Kerberos, with the library that it brings, under each protection."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")
pytest.importorskip("kerberos", reason="built with libkrb5-dev: pip install pyiceberg[hive-kerberos]")

from tests.support.logins.kdc import Kdc
from tests.support.logins.secured import ALICE, PROTECTIONS, Secured


@pytest.fixture
def as_alice(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have alice's ticket."""
    monkeypatch.setenv("KRB5CCNAME", kdc.tickets(ALICE))


@pytest.mark.parametrize("protection", [PROTECTIONS[-1], *(pytest.param(each, marks=pytest.mark.slow) for each in PROTECTIONS[:-1])])
@pytest.mark.usefixtures("as_alice")
def test_tables_are_made_and_read(kdc: Kdc, tmp_path: Path, protection: str) -> None:
    secured = Secured(kdc, tmp_path / "home")
    options = {"hive.kerberos-authentication": "true", "hive.kerberos-service-name": "hive", "ugi": "alice:staff"}
    with secured.serve(**{"hadoop.rpc.protection": protection, "warehouse": f"file:{tmp_path}/warehouse"}):
        catalog = HiveCatalog("secured", uri=secured.uri, **options)
        catalog.create_namespace("taxi")
        rows = pa.table({f"column_{number}": [1, 2] for number in range(500)})  # answers of more than 64 KiB
        table = catalog.create_table("taxi.trips", rows.schema)
        table.append(rows)
        assert catalog.load_table("taxi.trips").scan().to_arrow().num_rows == 2
        with secured.kerberos(qualities=(protection,)) as client:
            assert client.get_database("taxi").ownerName == "alice"


@pytest.mark.usefixtures("as_alice")
def test_a_user_without_a_ticket_is_kept_out(kdc: Kdc, tmp_path: Path) -> None:
    secured = Secured(kdc, tmp_path / "home")
    with secured.serve(), pytest.raises(Exception, match="This server asks for a login; it accepts kerberos, token"):
        HiveCatalog("open", uri=secured.uri).list_namespaces()
