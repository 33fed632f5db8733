"""Settings whose whole effect is one decision of a service."""

from __future__ import annotations

from pathlib import Path

import pytest

from metastore.errors import MetaError
from metastore.service import tables
from metastore.service.context import Call
from metastore.service.names import TableName
from metastore.service.server import get_config_value
from tests.service.conftest import MetastoreMaker, call_of, make_table

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


def test_a_taken_place_may_be_prohibited_for_translated_tables_only(
    make_metastore: MetastoreMaker, call: Call, tmp_path: Path
) -> None:
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
