"""Keep a ledger in a transactional table: stream into it, change it, compact it and count it, all at once, and print the counts.

Each transfer is two rows, in partitions of two days: one account is debited, another one credited. During any number of transactions, and
compactions meanwhile, every reader must see both rows of a transfer or none: the amounts add up to zero. A stream commits
batches, Spark changes and removes transfers, Spark reads without pause, a compactor works beside them; with `examples/run acid` it is a
process of the server.

    examples/run acid --rows 1000000
    python examples/acid.py --uri thrift://HOST:PORT
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from metastore.client import Client, connect
from metastore.idl import (
    CreateTableRequest,
    Database,
    FieldSchema,
    SerDeInfo,
    ShowCompactRequest,
    StorageDescriptor,
    Table,
)
from metastore.spark import AcidTable
from metastore.streaming import StreamingConnection

DATABASE, NAME = "bank", "ledger"
DAYS = 8
ROUNDS = 4
COMMITS = 80
LEAST_ROWS = 20_000
PATIENCE = 600


@dataclass
class Story:
    """The counts of all threads so far."""

    uri: str
    rows: int
    ingested: int = 0
    updated: int = 0
    deleted: int = 0
    reads: int = 0
    wrong: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)


def make_table(client: Client) -> None:
    """Make the ledger. For more than three deltas in a partition the server queues a compaction."""
    client.create_database(Database(name=DATABASE, parameters={}))
    columns = [
        FieldSchema("transfer", "bigint"),
        FieldSchema("account", "int"),
        FieldSchema("amount", "bigint"),
        FieldSchema("revision", "int"),
    ]
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    storage = StorageDescriptor(
        cols=columns,
        inputFormat=f"{orc}InputFormat",
        outputFormat=f"{orc}OutputFormat",
        numBuckets=-1,
        bucketCols=[],
        sortCols=[],
        serdeInfo=SerDeInfo(serializationLib=f"{orc}Serde", parameters={}),
        parameters={},
    )
    parameters = {
        "transactional": "true",
        "transactional_properties": "default",
        "compactorthreshold.hive.compactor.delta.num.threshold": "3",
    }
    table = Table(
        dbName=DATABASE,
        tableName=NAME,
        owner="bank",
        tableType="MANAGED_TABLE",
        partitionKeys=[FieldSchema("day", "string")],
        parameters=parameters,
        sd=storage,
    )
    capabilities = ["HIVEFULLACIDWRITE", "HIVEFULLACIDREAD", "HIVEBUCKET2"]
    client.create_table_req(CreateTableRequest(table=table, processorCapabilities=capabilities, processorIdentifier="examples/acid.py"))


def transfers(first: int, count: int) -> pa.RecordBatch:
    """Return the rows of some transfers, two for each."""
    number = pa.array(range(first, first + count), pa.int64())
    amount = pc.add(pc.bit_wise_and(pc.multiply(number, 7919), 0xFFFF), 1)
    account = pc.cast(pc.bit_wise_and(number, 0x3FF), pa.int32())
    revision = pa.array([0] * count, pa.int32())
    days = [f"2024-01-{day + 1:02d}" for day in range(DAYS)]
    halves = []
    for sign, shift in ((pc.negate, 0), (lambda value: value, 1)):
        day = pa.array([days[(key + shift) % DAYS] for key in range(first, first + count)])
        halves.append([number, pc.add(account, pa.scalar(shift, pa.int32())), sign(amount), revision, day])
    names = ["transfer", "account", "amount", "revision", "day"]
    return pa.RecordBatch.from_arrays([pa.concat_arrays(list(pair)) for pair in zip(*halves, strict=True)], names=names)


def ingest(story: Story) -> None:
    """Stream all transfers in `COMMITS` commits, ten to a batch."""
    each = story.rows // 2 // COMMITS
    with StreamingConnection(story.uri, f"{DATABASE}.{NAME}") as connection:
        for start in range(0, COMMITS, 10):
            with connection.batch(10) as batch:
                for commit in range(start, start + 10):
                    last = commit == COMMITS - 1
                    count = story.rows // 2 - commit * each if last else each
                    with batch.transaction():
                        batch.write(transfers(commit * each, count))
                    story.ingested += 2 * count


def change(story: Story, spark: SparkSession) -> None:
    """Double some transfers and remove others while more are streamed; both rows of a transfer change in one transaction."""
    table = AcidTable.forName(spark, f"{DATABASE}.{NAME}", story.uri)
    for number in range(ROUNDS):
        while story.ingested * (ROUNDS + 1) < story.rows * (number + 1) and not story.ended.is_set():
            time.sleep(0.1)
        story.updated += table.update(f"transfer % 50 = {number}", {"amount": "amount * 2", "revision": "revision + 1"})
        story.deleted += table.delete(f"transfer % 50 = {49 - number}")


def read(story: Story, spark: SparkSession) -> None:
    """Read without pause until all has ended; note every total that is wrong."""
    table = AcidTable.forName(spark, f"{DATABASE}.{NAME}", story.uri)
    revisions = 0
    while not story.ended.is_set():
        found = totals(table)
        if found.total or found.odd or found.revisions < revisions or found.pairs * 2 != found.rows:
            story.wrong.append(f"read {story.reads}: {found.asDict()}, {revisions} revisions before")
        revisions = found.revisions
        story.reads += 1


def totals(table: AcidTable):  # a row with the selected columns
    """Return sums over the whole table as it is now."""
    per_transfer = (
        table.toDF()
        .groupBy("transfer")
        .agg(
            f.sum("amount").alias("amount"),
            f.count("*").alias("rows"),
            f.sum("revision").alias("revision"),
        )
    )
    found = per_transfer.agg(
        f.coalesce(f.sum(f.abs("amount")), f.lit(0)).alias("total"),
        f.coalesce(f.sum("rows"), f.lit(0)).alias("rows"),
        f.count("*").alias("pairs"),
        f.count(f.when(f.col("rows") != 2, 1)).alias("odd"),
        f.coalesce(f.sum("revision"), f.lit(0)).alias("revisions"),
    ).first()
    table.close()
    return found


def together(story: Story, spark: SparkSession) -> None:
    """Run ingest and changes beside the reader; raise the first error of any of them."""
    errors: list[BaseException] = []

    def guarded(work, *arguments) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001  # it is raised below
            errors.append(error)
            story.ended.set()

    writers = [threading.Thread(target=guarded, args=each) for each in ((ingest, story), (change, story, spark))]
    reader = threading.Thread(target=guarded, args=(read, story, spark))
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    story.ended.set()
    reader.join()
    if errors:
        raise errors[0]


def compacted(client: Client) -> Counter[str]:
    """Wait until no compaction is under way; return the numbers of compactions by kind and outcome."""
    end = time.monotonic() + PATIENCE
    while True:
        found = [each for each in client.show_compact(ShowCompactRequest()).compacts if each.dbname == DATABASE]
        kinds = {1: "minor", 2: "major"}
        states = Counter(f"{kinds.get(each.type, each.type)} {each.state}" for each in found)
        if not any(each.state in ("initiated", "working", "ready for cleaning") for each in found):
            return states
        if time.monotonic() > end:
            raise TimeoutError(f"compactions do not end: {dict(states)}; is a compactor running?")
        time.sleep(0.5)


def main() -> None:
    """Run the story."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uri", required=True, help="the metastore, thrift://HOST:PORT")
    parser.add_argument("--warehouse", help="not used: the metastore has the locations of tables")
    parser.add_argument("--rows", type=int, default=1_000_000, help=f"number of rows, at least {LEAST_ROWS} (default: %(default)s)")
    options = parser.parse_args()
    if options.rows < LEAST_ROWS:
        parser.error(f"--rows must be at least {LEAST_ROWS}")
    story = Story(options.uri, options.rows // 2 * 2)
    spark = (
        SparkSession.builder.master("local[*]")
        .appName("examples/acid.py")
        .config("spark.hadoop.hive.metastore.uris", options.uri)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with connect(options.uri) as client:
        make_table(client)
        begun = time.monotonic()
        together(story, spark)
        seconds = time.monotonic() - begun
        print(f"{story.ingested:,} rows in {COMMITS} commits, {story.updated:,} updated, {story.deleted:,} deleted, {seconds:.0f} s")
        print(f"{story.reads} reads of the whole table meanwhile, {len(story.wrong)} of them wrong")
        states = compacted(client)
        print(f"compactions: {', '.join(f'{count} {state}' for state, count in sorted(states.items()))}")
    table = AcidTable.forName(spark, f"{DATABASE}.{NAME}")
    detail, found = table.detail().first(), totals(table)
    assert detail is not None
    print(f"the table has {found.rows:,} rows in {detail.numFiles} files, {detail.sizeInBytes:,} bytes, up to write id {detail.writeId}")
    assert not story.wrong, story.wrong[:3]
    assert story.reads, "no read ended"
    assert (found.total, found.odd) == (0, 0), found
    assert (found.rows, found.revisions) == (story.rows - story.deleted, story.updated), (found, story)
    assert any(state.endswith("succeeded") for state in states), "nothing was compacted"
    assert not any(state.endswith("failed") for state in states), states
    print("all results as expected")
    spark.stop()


if __name__ == "__main__":
    main()
