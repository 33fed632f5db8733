"""Settings of a Java server as a file of ours: the file reads as the same settings, and lists the decisions that are left."""

from __future__ import annotations

from pathlib import Path

from metastore.config import load
from metastore.config.written import toml
from tests.transfer.test_dumps import run

PROPERTIES = {
    "javax.jdo.option.ConnectionURL": "jdbc:mysql://h/hive",
    "javax.jdo.option.ConnectionPassword": "hidden-1",
    "hive.metastore.warehouse.dir": "s3a://b/w",
    "hive.txn.timeout": "300s",
    "metastore.compactor.cleaner.on": "false",
    "hive.metastore.authentication.ldap.bindpw": "hidden-2",
    "hive.metastore.sasl.enabled": "true",
    "some.client.property": 'a "quoted" one',
    "some.client.password": "hidden-3",
}


def hive_site(path: Path) -> Path:
    rows = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in PROPERTIES.items())
    path.write_text(f"<configuration>{''.join(rows)}</configuration>")
    return path


def test_written_values_read_the_same(tmp_path: Path) -> None:
    source = hive_site(tmp_path / "hive-site.xml")
    config = load({}, hive_site=source, environment={})
    text = toml(config, "hive-site.xml")
    written = tmp_path / "metastore.toml"
    written.write_text(text)
    again = load({}, config_file=written, environment={})
    assert (again.warehouse, again.txn_timeout, again.compactor_cleaner) == ("s3a://b/w", 300.0, False)
    assert again.other["some.client.property"] == 'a "quoted" one'
    assert "# ldap_bind_password: a secret; set it by METASTORE_LDAP_BIND_PASSWORD" in text
    assert "# hive.metastore.sasl.enabled: asks for logins by Kerberos" in text
    assert "hidden" not in text


def test_the_command(tmp_path: Path) -> None:
    done = run("import", "--settings", str(hive_site(tmp_path / "hive-site.xml")), home=tmp_path)
    assert done.stdout.startswith("# Made from "), done.stderr
    assert 'warehouse = "s3a://b/w"' in done.stdout.splitlines()
    missing = run("import", "--settings", str(tmp_path / "none.xml"), home=tmp_path)
    assert (missing.returncode, "none.xml" in missing.stderr) == (2, True)
    nothing = run("import", home=tmp_path)
    assert (nothing.returncode, "name a SOURCE" in nothing.stderr) == (2, True)
