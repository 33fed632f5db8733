"""TLS to MariaDB and MySQL, as the URL of the database requests it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import URL, make_url

pymysql = pytest.importorskip("pymysql")

from metastore.errors import MetaError, MetastoreError  # noqa: E402  # see above
from metastore.store.core import migrate  # noqa: E402  # see above
from metastore.store.core.database import Database  # noqa: E402  # see above
from metastore.store.drivers.mysql import MySQLDriver  # noqa: E402  # see above
from tests.support.databases import databases  # noqa: E402  # see above
from tests.support.databases.mariadb_tls import mariadb_with_tls  # noqa: E402  # see above
from tests.support.logins.certificates import Authority  # noqa: E402  # see above


@pytest.fixture(scope="module")
def speaks_tls() -> Iterator[tuple[int, Path]]:
    databases.server("mysql")  # skips where MariaDB is not there
    with mariadb_with_tls() as found:
        yield found


def url(host: str, port: int, **query: object) -> URL:
    return make_url(f"mysql://metastore:metastore@{host}:{port}/metastore").update_query_dict({k: str(v) for k, v in query.items()})


def cipher(address: URL) -> str:
    connection = MySQLDriver(address).connect()
    try:
        cursor = connection.cursor()
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        return str(cursor.fetchone()[1])
    finally:
        connection.close()


def test_the_certificate_and_its_name_are_looked_at(speaks_tls: tuple[int, Path], tmp_path: Path) -> None:
    port, authority = speaks_tls
    assert cipher(url("localhost", port, ssl_ca=authority))
    with pytest.raises(pymysql.err.OperationalError, match="certificate verify failed"):
        cipher(url("localhost", port, ssl_ca=Authority(tmp_path).file))
    with pytest.raises(pymysql.err.OperationalError, match=r"127\.0\.0\.1"):
        cipher(url("127.0.0.1", port, ssl_ca=authority))
    assert cipher(url("127.0.0.1", port, ssl_ca=authority, ssl_verify_identity="false"))


def test_the_schema_is_made_over_tls_too(speaks_tls: tuple[int, Path], tmp_path: Path) -> None:
    port, authority = speaks_tls
    database = Database(url("localhost", port, ssl_ca=authority).render_as_string(hide_password=False), pool_size=1)
    try:
        migrate.upgrade(database)
        assert migrate.current(database) == migrate.revisions()[-1]
    finally:
        database.close()
    wrong = Database(url("localhost", port, ssl_ca=Authority(tmp_path).file).render_as_string(hide_password=False), pool_size=1)
    try:
        with pytest.raises(MetastoreError, match="certificate verify failed"):
            migrate.upgrade(wrong)
    finally:
        wrong.close()


def test_a_server_without_tls_is_refused_where_the_url_asks_for_it(tmp_path: Path) -> None:
    plain = databases.server("mysql").set(drivername="mysql")
    if cipher(plain):
        pytest.skip("this server speaks TLS")
    with pytest.raises(pymysql.err.OperationalError, match="SSL"):
        cipher(plain.update_query_dict({"ssl_ca": str(Authority(tmp_path).file)}))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"sslmode": "require"}, "sslmode, which is not known; it may have unix_socket, ssl_ca"),
        ({"ssl_ca": "/nowhere/ca.pem"}, "ssl_ca /nowhere/ca.pem can not be used: No such file"),
        ({"ssl_cert": "/nowhere/cert.pem"}, "ssl_cert /nowhere/cert.pem can not be used: No such file"),
    ],
)
def test_an_option_of_a_url_that_can_not_be_met_is_refused(query: dict[str, str], text: str) -> None:
    with pytest.raises(MetaError, match=text) as refused:
        MySQLDriver(make_url("mysql://u:hunter2@h/d").update_query_dict(query))
    assert "hunter2" not in refused.value.message
