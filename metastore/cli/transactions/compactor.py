"""`metastore compactor`: run compaction workers on Spark. Holds no rule of a compaction.

This file is also a program for `spark-submit`, which takes the path of a file.
"""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer

from metastore import log
from metastore.cli.common.options import DEFAULT_URI, Uri, fail

Confs = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be given several times.")]


def compactor(
    uri: Uri = DEFAULT_URI,
    master: Annotated[str | None, typer.Option(help="Spark's master; without it, spark-submit's, else local[*].")] = None,
    conf: Confs = None,
    workers: Annotated[int, typer.Option(min=1, help="Compactions at one time.")] = 1,
    pool: Annotated[str | None, typer.Option(help="Take entries of this pool; without it, those that name none.")] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two queries of an empty queue.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="End when the queue is empty; the status is 1 if it could not be read.")] = False,
) -> None:
    """Take compactions from the queue of a metastore and do them on Spark, until Ctrl-C or SIGTERM."""
    try:
        from metastore.spark.compaction.compactor import Compactor, open_session
    except ImportError as error:
        fail(f"compactions run on Spark: pip install '.[spark]' in the checkout of metastore ({error})")
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    log.configure("info", "console" if sys.stderr.isatty() else "json")
    spark = open_session(uri, master, _settings(conf or []))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    console = Console(stderr=True)
    logger = log.get("metastore.compactor")

    def begins(progress: Progress, task: TaskID, text: str) -> None:
        progress.update(task, description=text)
        if not console.is_terminal:
            logger.info("compaction begins", what=text)

    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True) as progress:

        def work() -> None:
            task = progress.add_task("waits for work", total=None)
            worker = Compactor(spark, uri, pool=pool, progress=lambda text: begins(progress, task, text))
            while not stop.is_set():
                outcome = worker.run_once() if once else worker.attempt()
                progress.update(task, description="waits for work")
                if outcome is None and once:
                    return
                if outcome is None:
                    stop.wait(interval)

        try:
            with ThreadPoolExecutor(workers, "compactor") as threads:
                for under_way in [threads.submit(work) for _ in range(workers)]:
                    under_way.result()
        except Exception as error:  # noqa: BLE001  # of a single run; otherwise a worker tries again
            fail(f"no compaction could be taken from {uri}: {error}")
        finally:
            spark.stop()


def _settings(conf: list[str]) -> dict[str, str]:
    for setting in conf:
        if "=" not in setting:
            fail(f"--conf {setting}: write KEY=VALUE", 2)
    return dict(setting.split("=", 1) for setting in conf)


if __name__ == "__main__":
    typer.run(compactor)
