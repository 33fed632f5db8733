"""Settings whose whole effect is one decision of a service."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from metastore.errors import ConfigValueSecurity, InvalidOperation, MetaError
from metastore.service.call.context import Call
from metastore.service.call.names import TableName
from metastore.service.catalog.tables import tables
from metastore.service.catalog.tables.alter_table import alter_table
from metastore.service.operations.server import get_config_value, get_meta_conf, set_meta_conf
from tests.support.catalog.catalog import MetastoreMaker, add_partitions, call_of, make_table

pytestmark = pytest.mark.on_one_database

NAME = TableName("hive", "default", "t")


@pytest.mark.parametrize(
    ("mode", "taken", "place"),
    [
        ("force", [], "t"), ("force", ["t"], "t"), ("seqsuffix", [], "t"), ("seqsuffix", ["t"], "t_1"),
        ("seqsuffix", ["t", "t_1", "t_2"], "t_3"), ("seqprefix", ["t", "1_t"], "2_t"), ("prohibit", [], "t"),
    ],
)  # fmt: skip
def test_where_a_translated_table_goes_when_its_place_is_taken(
    make_metastore: MetastoreMaker, call: Call, tmp_path: Path, mode: str, taken: list[str], place: str
) -> None:
    strict = call_of(make_metastore(table_translation="strict", translated_location=mode))
    for name in taken:
        (tmp_path / "warehouse" / name).mkdir(parents=True)
    make_table(strict, "t")
    found = tables.get_table(call, NAME)
    assert (found.tableType, found.parameters["TRANSLATED_TO_EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert found.sd.location == f"file:{tmp_path}/warehouse/{place}"
    assert (tmp_path / "warehouse" / place).is_dir()


def test_a_taken_place_may_be_prohibited_for_translated_tables_only(make_metastore: MetastoreMaker, call: Call, tmp_path: Path) -> None:
    (tmp_path / "warehouse" / "t").mkdir(parents=True)
    strict = call_of(make_metastore(table_translation="strict", translated_location="prohibit"))
    with pytest.raises(MetaError, match=r"Default location is not available for table: file:.*/warehouse/t: remove the directory"):
        make_table(strict, "t")
    make_table(strict, "t", kind="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"})
    assert tables.get_table(call, NAME).sd.location == f"file:{tmp_path}/warehouse/t"


@pytest.mark.parametrize("name", ["hive.metastore.batch.retrieve.max", "metastore.batch.retrieve.max"])
def test_clients_learn_how_much_to_ask_for_at_once(make_metastore: MetastoreMaker, call: Call, name: str) -> None:
    assert get_config_value(call, name, "7") == "300"
    assert get_config_value(call_of(make_metastore(batch_retrieve_max=2)), name, "7") == "2"


@pytest.mark.parametrize("name", ["mapreduce.job.name", "hive", "metastorex"])
def test_a_name_that_begins_as_hive_s_do_has_the_default(call: Call, name: str) -> None:
    assert get_config_value(call, name, "x") == "x"


SECRETS = (
    "fs.azure.account.key.lake.dfs.core.windows.net", "fs.azure.sas.box.lake", "fs.s3a.session.token", "fs.s3a.access.key",
    "fs.s3a.encryption.key", "hive.s3.aws-access-key", "hive.metastore.keystore.pass", "hive.server2.authentication.ldap.bindpw",
    "hive.llap.task.keytab.passphrase", "hive.metastore.client.http.additional.headers", "hive.kafka.jaas.config",
    "metastore.oauth.client-secret", "hdfs.storage_key", "mapred.apiKey",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("prefix", ["", "hive.", "metastore.", "hive.metastore."])
def test_a_secret_of_a_hive_configuration_is_returned_to_nobody(make_metastore: MetastoreMaker, prefix: str, name: str) -> None:
    call = call_of(make_metastore(other={name: "hunter2", f"{prefix}{name}": "hunter2"}))
    with pytest.raises(ConfigValueSecurity, match="cannot be accessed"):
        get_config_value(call, prefix + name, None)
    with pytest.raises(MetaError, match="Invalid configuration key") as refused:
        get_meta_conf(call, prefix + name)
    assert "hunter2" not in str(refused.value)


def test_a_secret_of_our_own_is_returned_under_none_of_hives_names(make_metastore: MetastoreMaker) -> None:
    call = call_of(make_metastore(ldap_bind_password="hunter2"))
    for name in ("metastore.authentication.ldap.bindpw", "hive.metastore.authentication.ldap.bindpw"):
        with pytest.raises(ConfigValueSecurity, match="cannot be accessed"):
            get_config_value(call, name, None)


def test_a_password_in_an_address_is_not_returned(make_metastore: MetastoreMaker) -> None:
    other = {
        "hive.druid.metadata.uri": "jdbc:mysql://druid:hunter2@host/d?user=u&password=hunter2&x=1",
        "hive.exec.scratchdir": "/tmp/hive",
    }
    call = call_of(make_metastore(other=other, warehouse="s3://me:hunter2@bucket/w"))
    assert get_config_value(call, "hive.druid.metadata.uri", None) == "jdbc:mysql://druid:***@host/d?user=u&password=***&x=1"
    assert get_config_value(call, "hive.metastore.warehouse.dir", None) == "s3://me:***@bucket/w"
    assert get_config_value(call, "hive.exec.scratchdir", None) == "/tmp/hive"


@pytest.mark.parametrize("name", ["hive.metastore.warehouse.dir", "warehouse", "db", "hive.exec.scratchdir", "", None])
def test_a_connection_sees_the_settings_that_it_can_set_alone(make_metastore: MetastoreMaker, name: str | None) -> None:
    """Java's server also refuses all other keys of getMetaConf."""
    with pytest.raises(MetaError, match="Invalid configuration key"):
        get_meta_conf(call_of(make_metastore(other={"hive.exec.scratchdir": "/tmp/hive"})), name)


@pytest.mark.parametrize("name", ["javax.jdo.option.ConnectionURL", "fs.s3a.secret.key", "metastore.dbPassword", " hive.x"])
def test_a_name_of_another_kind_or_of_a_password_is_refused(call: Call, name: str) -> None:
    with pytest.raises(ConfigValueSecurity, match="cannot be accessed"):
        get_config_value(call, name, "x")


TYPES = "hive.metastore.disallow.incompatible.col.type.changes"
WHITELIST = "metastore.partition.name.whitelist.pattern"


def test_a_connection_has_settings_of_its_own(call: Call) -> None:
    name = make_table(call, "t", [("a", "int"), ("b", "string"), ("c", "int")], keys=[("k", "string")])
    other = call_of(call.metastore)
    table = deepcopy(tables.get_table(call, name))
    table.sd.cols.pop(1)
    set_meta_conf(call, TYPES, "false")
    set_meta_conf(call, WHITELIST, "[0-9]+")
    later = Call(call.metastore, call.client, "later")
    assert [get_meta_conf(each, TYPES) for each in (later, other)] == ["false", "true"]
    assert [get_meta_conf(each, f"hive.{WHITELIST}") for each in (later, other)] == ["[0-9]+", ""]
    assert get_config_value(later, TYPES, None) == "false"
    with pytest.raises(InvalidOperation, match="incompatible"):
        alter_table(other, name, table)
    alter_table(later, name, table)
    with pytest.raises(MetaError, match="whitelist"):
        add_partitions(later, name, [["x"]])
    add_partitions(other, name, [["x"]])
    set_meta_conf(later, WHITELIST, "(a+)+$")  # which Python's own engine would try for hours
    with pytest.raises(MetaError, match="whitelist"):
        add_partitions(later, name, [["a" * 40 + "!"]])
    with pytest.raises(MetaError, match=r"Invalid configuration value \(\?=a\)"):
        set_meta_conf(later, WHITELIST, "(?=a)")
    set_meta_conf(later, f"hive.{WHITELIST}", "")
    add_partitions(call, name, [["y"]])
    assert get_meta_conf(call, TYPES) == "false", "another setting leaves it"


@pytest.mark.parametrize("prefix", ["", "hive."])
@pytest.mark.parametrize(
    ("key", "value", "default"),
    [
        ("metastore.try.direct.sql", "false", "true"),
        ("metastore.try.direct.sql.ddl", "false", "true"),
        ("metastore.client.socket.timeout", "20s", "600s"),
        ("metastore.partition.order.expr", "x", '"PART_NAME" asc'),
        ("metastore.client.capability.check", "false", "true"),
        ("metastore.expression.proxy", "DefaultPartitionExpressionProxy", "PartitionExpressionForMetastore"),
    ],
)
def test_a_connection_can_change_the_settings_that_java_allows(
    make_metastore: MetastoreMaker, prefix: str, key: str, value: str, default: str
) -> None:
    call = call_of(make_metastore(other={"hive.metastore.try.direct.sql": "true"}))
    assert get_meta_conf(call, prefix + key) == default
    set_meta_conf(call, prefix + key, value)
    assert get_meta_conf(call, key) == get_meta_conf(call, f"hive.{key}") == value
    assert get_meta_conf(call_of(call.metastore), key) == default


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, "x"), ("hive.metastore.warehouse.dir", "/tmp"), ("metastore.nope", "x"), ("warehouse", "/x"), (TYPES, "maybe"),
        (TYPES, None), (WHITELIST, "["), ("hive.users.in.admin.role", "alice"),
    ],
)  # fmt: skip
def test_settings_that_a_connection_can_not_change_are_refused(call: Call, key: str | None, value: str | None) -> None:
    with pytest.raises(MetaError, match="Invalid configuration"):
        set_meta_conf(call, key, value)
    assert call.client.config is None
