"""Start Spark as the tests use it. The caller chooses its metastore."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark.sql import SparkSession

GENERATES_CODE = "METASTORE_TEST_SPARK_CODEGEN"
"""Variable that, with any value, lets Spark compile each query as it does for users; `tests/spark/releases` sets it."""
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
}
"""Settings that make short queries quick, each with its share of the tests' time. Compiling a query takes longer than running it over the
few rows of a test: a third. Planning again after each stage takes a further job for each: a tenth. Noting the place of each call in a
program, and a long description of each plan for pages that are turned off: a twentieth."""
JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms900m -Xmn500m -XX:ReservedCodeCacheSize=128m -XX:-UsePerfData "
    "-Djdk.lang.Process.launchMechanism=VFORK"
)
"""Options of a Java process that runs for seconds or minutes: its second compiler would never pay off. With room for new objects and for
compiled code it collects and compiles a third as often, which saves a tenth of its time. Hadoop starts a `chmod` for each file and
directory that is written, ten thousand in a run of the tests: VFORK starts them without a helper process."""
ARGUMENTS = (
    "--master", "local[1]", "--conf", f"spark.driver.extraJavaOptions={JAVA}", "--conf", "spark.ui.enabled=false",
    "--conf", "spark.ui.showConsoleProgress=false",
    *(part for name, value in QUICK.items() for part in ("--conf", f"{name}={value}")),
)  # fmt: skip
"""Arguments of a program of Spark that runs a few statements."""


def _look_up_once(owner: type[JVMView | JavaPackage]) -> None:
    """Make the JVM's view and its packages cache the names that were looked up in them.

    PySpark looks up `functions` or `py4j.reflection` for each column and each error, and each look-up of a package reads the tables of
    contents of 300 archives: a tenth of the driver's time.
    """
    look_up = owner.__getattr__

    def keep(self: JVMView | JavaPackage, name: str) -> Any:
        found = look_up(self, name)
        if isinstance(found, (JavaClass, JavaPackage)):
            self.__dict__[name] = found
        return found

    setattr(owner, "__getattr__", keep)  # noqa: B010  # mypy lets no method be assigned


if GENERATES_CODE not in os.environ:
    for owner in (JVMView, JavaPackage):
        _look_up_once(owner)


@contextmanager
def session(warehouse: Path, settings: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """Open a session on two threads, or join the one that is open, and stop it at the end."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.executorEnv.PYTHONPATH", str(Path(__file__).with_name("spark_workers")))
        .config("spark.python.daemon.module", "preloaded")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", str(warehouse))
    )
    for name, value in ({} if GENERATES_CODE in os.environ else QUICK).items():
        builder = builder.config(name, value)
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    opened = builder.getOrCreate()
    opened.sparkContext.setLogLevel("ERROR")
    yield opened
    opened.stop()
