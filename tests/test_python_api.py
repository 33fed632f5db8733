"""The examples of docs/python-api.md run, but for those that need Spark, a KDC or a stream."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from metastore.config import Config
from metastore.errors import InvalidOperation
from metastore.idl import Table
from metastore.listeners.events import ClientInfo, DropTable
from metastore.service.authorizer import CREATE, DATABASE, SELECT, TABLE, Access, Who
from metastore.testing import serving

PAGE = Path(__file__).parents[1] / "docs" / "python-api.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_examples_run(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with serving(tmp_path) as server:
        names["server"] = server
        for example in EXAMPLES:
            exec(compile(example, "python-api.md", "exec"), names if "with serving()" not in example else {})  # our own page
    keeper, teams = names["Keeper"](Config()), names["Teams"]()
    dropped = DropTable(client=ClientInfo("a:1", "ann", (), "drop_table"), table=Table(dbName="d", tableName="kept_t"), delete_data=True)
    with pytest.raises(InvalidOperation, match="kept_t is kept"):
        keeper.before(dropped)
    asked = [Access(SELECT, TABLE, "hive", "sales", "t"), Access(CREATE, DATABASE, "hive", "sales"), Access(CREATE, DATABASE, "hive", "hr")]
    assert list(teams.allowed(Who("ann", ("sales",)), asked)) == [True, True, False]


@pytest.mark.parametrize(
    "name",
    [
        "client.connect",
        "spark.AcidTable",
        "spark.catalog.CAPABILITIES",
        "spark.compactor.Compactor",
        "spark.enable",
        "spark.sql",
        "spark.streaming_sink.write_stream",
        "spark.transaction",
        "spark.work.Work",
        "streaming.BadRecord",
        "streaming.StreamingConnection",
        "streaming.StrictJson",
    ],
)
def test_names_that_programs_import_stay(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(f"metastore.{module}"), attribute)
