from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.config import Config, ConfigError, load, settings
from metastore.config.values import parse, render

HIVE_SITE = """<?xml version="1.0"?>
<?xml-stylesheet type="text/xsl" href="configuration.xsl"?>
<configuration>
  <property><name>hive.metastore.warehouse.dir</name><value>${lake.root}/managed</value></property>
  <property><name>lake.root</name><value>s3a://${env.LAKE_BUCKET}/hive</value></property>
  <property><name>metastore.thrift.port</name><value>9999</value><final>true</final></property>
  <property><name>hive.txn.timeout</name><value>5m</value></property>
  <property><name>hive.exec.mode.local.auto</name><value>false</value></property>
  <property><name>hive.metastore.keystore.password</name><value>swordfish</value></property>
  <property><name>javax.jdo.option.ConnectionURL</name><value>jdbc:postgresql://db/metastore</value></property>
  <property><name>javax.jdo.option.ConnectionPassword</name><value>hunter2</value></property>
</configuration>
"""


@pytest.fixture
def hive_site(tmp_path: Path) -> Path:
    path = tmp_path / "hive-site.xml"
    path.write_text(HIVE_SITE)
    return path


def test_a_later_source_wins_and_is_remembered(tmp_path: Path, hive_site: Path) -> None:
    toml = tmp_path / "metastore.toml"
    toml.write_text('port = 1000\nlog-level = "debug"\n')

    def port(**sources: object) -> tuple[int, str]:
        config = load(environment=sources.pop("environment", {}), **sources)  # type: ignore[arg-type]
        return config.port, config.source("port")

    assert port() == (9083, "default")
    files = {"hive_site": hive_site}
    assert port(**files) == (9999, str(hive_site))
    files["config_file"] = toml
    assert port(**files) == (1000, str(toml))
    everywhere = {**files, "environment": {"METASTORE_PORT": "1001"}}
    assert port(**everywhere) == (1001, "environment METASTORE_PORT")
    assert port(**everywhere, options={"port": 1002, "host": None}) == (1002, "--port")
    assigned = port(**everywhere, options={"port": 1002}, assignments=["hive.metastore.port=1003"])
    assert assigned == (1003, "--set hive.metastore.port")
    assert load(config_file=toml, environment={}).log_level == "debug"


def test_hive_site_variables_are_replaced(hive_site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_BUCKET", "bucket")
    assert load(hive_site=hive_site, environment={}).warehouse == "s3a://bucket/hive/managed"


def test_hive_values_are_found_by_every_name_and_secrets_by_none(hive_site: Path) -> None:
    config = load(hive_site=hive_site, environment={})
    assert config.hive_value("hive.txn.timeout") == config.hive_value("metastore.txn.timeout") == "300s"
    assert config.hive_value("hive.stats.autogather") == "true"
    assert config.hive_value("hive.exec.mode.local.auto") == "false"
    assert config.hive_value("hive.metastore.keystore.password") is None
    assert config.hive_value("javax.jdo.option.ConnectionPassword") is None
    assert config.hive_value("db", "none") == "none"
    assert config.hive_value("hive.unknown", "fallback") == "fallback"
    assert config.hive_value("hive.metastore.warehouse.external.dir", "unset") == "unset"


def test_an_unlisted_property_is_found_with_and_without_its_prefix() -> None:
    config = load(assignments=["metastore.expression.batch=7"], environment={})
    assert config.hive_value("hive.metastore.expression.batch") == "7"
    assert config.hive_value("metastore.expression.batch") == "7"


def test_a_java_database_is_left_aside_with_a_warning(hive_site: Path) -> None:
    config = load(hive_site=hive_site, environment={})
    assert config.db.startswith("sqlite:///")
    assert [warning for warning in config.warnings if "ConnectionURL" in warning and "--db" in warning]
    assert "hunter2" not in repr(config) + str(config.other)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("wharehouse=/x", "unknown setting wharehouse .*did you mean warehouse"),
        ("workers", "expected KEY=VALUE"),
        ("workers=many", "setting workers .*'many' does not fit: expected a number"),
        ("workers=-1", "setting workers: -1 is less than 0"),
        ("port=9083s", "without a unit"),
        ("stats_autogather=perhaps", "expected true or false"),
        ("txn_timeout=5 fortnights", "expected a duration"),
        ("max_message_size=5 pigs", "expected a size"),
        ("scheduled_query_time_zone=Mars/Olympus", "there is no time zone 'Mars/Olympus'; write one such as Europe/Berlin"),
        ("table_translation=loose", "'loose' is none of legacy, strict"),
        ("filesystem_options={", "setting filesystem_options .*the value does not fit: expected a JSON object"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(assignments=[assignment], environment={})


def test_files_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    bad_toml, bad_xml, other_xml, including_xml = (tmp_path / name for name in ("bad.toml", "bad.xml", "other.xml", "including.xml"))
    bad_toml.write_text("port = ")
    bad_xml.write_text("<configuration>")
    other_xml.write_text("<project/>")
    including_xml.write_text('<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="secure.xml"/></configuration>')
    for arguments in (
        {"config_file": bad_toml},
        {"config_file": tmp_path / "missing.toml"},
        {"hive_site": bad_xml},
        {"hive_site": other_xml},
        {"hive_site": including_xml},
        {"hive_site": tmp_path / "missing.xml"},
    ):
        with pytest.raises(ConfigError, match=str(next(iter(arguments.values())))):
            load(environment={}, **arguments)  # type: ignore[arg-type]


def test_toml_takes_hive_names_lists_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "metastore.toml"
    path.write_text(
        'hive.metastore.batch.retrieve.max = 2\n"fs.trash.interval" = "1h"\nadmin_users = ["ann", "bob"]\n'
        'hive.some.flag = true\n[filesystem_options.s3]\nendpoint_url = "http://127.0.0.1:1"\n'
    )
    config = load(config_file=path, environment={})
    assert config.batch_retrieve_max == 2
    assert config.trash_interval == 60
    assert config.admin_users == ("ann", "bob")
    assert config.filesystem_options == {"s3": {"endpoint_url": "http://127.0.0.1:1"}}
    assert config.hive_value("hive.some.flag") == "true"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('port = 1\n\n[metastore]\nauthentication = ["kerberos"]\n', r"a section \[metastore\], line 3: settings belong at the top"),
        ("[hive.metastore]\nport = 1\n", r"a section \[hive\], line 1"),
        ("  [ server ]\nport = 1\n", r"a section \[server\], line 1"),
        ("[[server]]\nport = 1\n", r"a section \[server\], line 1"),
        (
            '[filesystem_options.s3]\nkey = "k"\nauthentication = ["users"]\n',
            r"has authentication in the section \[filesystem_options.s3\]",
        ),
        ('[proxy_users]\nauthorization = "grants"\n', r"has authorization in the section \[proxy_users\]"),
        ('warehouse = "\udcff"\n', "is not valid TOML"),
    ],
)
def test_a_section_of_toml_that_is_no_settings_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "metastore.toml"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=message):
        load(config_file=path, environment={})


def test_a_line_of_a_text_that_looks_like_a_section_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "metastore.toml"
    path.write_text('kerberos_name_rules = """\n[metastore]\n"""\n[filesystem_options.sftp]\nhost = "h"\nport = 1\n')
    config = load(config_file=path, environment={})
    assert config.filesystem_options == {"sftp": {"host": "h", "port": 1}}


def test_the_variable_of_kubernetes_for_a_service_is_not_a_port() -> None:
    config = load(environment={"METASTORE_PORT": "tcp://10.0.0.1:9083", "METASTORE_WAREHOUSES": "/x"})
    assert config.port == 9083
    assert len(config.warnings) == 2
    assert "METASTORE_WAREHOUSE?" in config.warnings[1]


def test_defaults_lie_in_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = Config()
    assert config.data_directory == str(tmp_path / "metastore")
    assert config.db == f"sqlite:///{tmp_path}/metastore/metastore.db"
    assert config.warehouse == f"{tmp_path}/metastore/warehouse"


def test_every_setting_can_come_from_the_environment() -> None:
    given = {setting.environment: render(setting.default, setting.unit) or "" for setting in settings()}
    config = load(environment=given)
    assert {config.source(setting.name) for setting in settings()} == {f"environment {setting.environment}" for setting in settings()}
    assert config == Config()


def test_no_name_of_hive_stands_for_two_settings() -> None:
    names = [name for setting in settings() for name in (setting.name, *setting.hive)]
    assert len(names) == len(set(names))


UNITS = [("d", 86400), ("h", 3600), ("min", 60), ("s", 1), ("seconds", 1), ("", 1)]


@given(st.integers(0, 10**6), st.sampled_from(UNITS))
def test_durations_are_read_in_their_unit(number: int, unit: tuple[str, int]) -> None:
    assert parse(f"{number}{unit[0]}", 1.0, "s") == number * unit[1]
