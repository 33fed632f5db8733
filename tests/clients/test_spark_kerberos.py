"""Spark's built-in Hive client (2.3) logs in by Kerberos with a keytab, and for another user by a delegation token."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install '.[kerberos]'")

from tests.support.logins.kdc import REALM, Kdc
from tests.support.logins.secured import ALICE, OOZIE, Secured

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("kdc")]


@pytest.fixture(scope="module")
def secured(running_kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    home = tmp_path_factory.mktemp("secured")
    made = Secured(running_kdc, home / "home")
    with made.serve(warehouse=f"file:{home}/warehouse"):
        yield made


def spark_sql(secured: Secured, folder: Path, *statements: str, options: tuple[str, ...], protection: str, cache: str = "") -> str:
    """Run statements in a Spark of its own and return its output."""
    folder.mkdir(parents=True, exist_ok=True)
    # Spark logs in before it reads its own settings.
    kerberos = "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>"
    (folder / "core-site.xml").write_text(f"<configuration>{kerberos}</configuration>")
    settings = {
        "hadoop.rpc.protection": protection,
        "hive.metastore.uris": secured.uri,
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}",
    }
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-sql"), "--master", "local[1]", "--driver-memory", "1g",
        "--driver-java-options", f"-Djava.security.krb5.conf={secured.kdc.configuration}",
        *(part for name, value in settings.items() for part in ("--conf", f"spark.hadoop.{name}={value}")),
        *options, "-e", "; ".join(statements),
    ]  # fmt: skip
    environment = {
        **os.environ,
        **secured.kdc.variables,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "HADOOP_CONF_DIR": str(folder),
        **({"KRB5CCNAME": cache} if cache else {}),
    }
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment, timeout=300)
    assert ran.returncode == 0, ran.stderr[:6000]
    return ran.stdout


@pytest.mark.parametrize("protection", ["authentication", "privacy"])
def test_a_keytab(secured: Secured, tmp_path: Path, protection: str) -> None:
    options = ("--principal", ALICE, "--keytab", str(secured.kdc.keytab(ALICE)))
    name = f"by_keytab_{protection}"
    statements = f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t USING parquet AS SELECT 1 AS a", f"SELECT a + 1 FROM {name}.t"
    assert spark_sql(secured, tmp_path, *statements, options=options, protection=protection).split() == ["2"]
    with secured.kerberos() as client:
        assert client.get_database(name).ownerName == "alice"


@pytest.mark.parametrize("protection", ["authentication", "privacy"])
def test_a_proxy_user_with_a_token(secured: Secured, tmp_path: Path, protection: str) -> None:
    name = f"by_proxy_{protection}"
    statements = f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t USING parquet AS SELECT 1 AS a", f"SELECT a + 1 FROM {name}.t"
    cache = secured.kdc.tickets(OOZIE)
    assert spark_sql(secured, tmp_path, *statements, options=("--proxy-user", "alice"), protection=protection, cache=cache).split() == ["2"]
    with secured.kerberos() as client:
        assert client.get_database(name).ownerName == "alice"
