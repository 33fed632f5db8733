"""The files that one task of the format `hive_acid` writes aside, on an executor. This module does not depend on other tasks and gives no
file its place.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.acid.buckets import buckets
from metastore.acid.orc.orc_files import cast
from metastore.acid.rewriting.bucket_files import BucketFile, PlainOrcFile, PlainParquetFile, event_type
from metastore.acid.rewriting.portions import Divider, Portion
from metastore.acid.storage import Storage
from metastore.acid.values.exact import checked, exact
from metastore.acid.values.types import arrow_type, with_timestamps
from metastore.spark.data_source_plan import FILES_OF_A_TASK, Staged, WritePlan, staged_folder
from metastore.spark.session.assignment import DoesNotFit

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_OPEN_FILES = 64
"""The most files that a task has open, where it may begin a further one for the same partition."""


class TaskFiles:
    """Files of one attempt of a task, by partition and bucket.

    For a table without buckets at most `MAX_OPEN_FILES` are open: with more partitions, the file that was used longest ago is ended. Its
    partition begins a further one at its next rows, up to `FILES_OF_A_TASK`, of which the last stays open. For an overwrite and a bucketed
    table each partition and bucket has one file, and all are open.
    """

    def __init__(self, plan: WritePlan, given: Sequence[str], task: int) -> None:
        self._plan = plan
        self._given = {name: place for place, name in enumerate(given)}
        self._task = task
        info = plan.info
        self._data = [(column.name.lower(), column.type) for column in info.table.sd.cols]
        keys = [(key.name.lower(), key.type) for key in info.table.partitionKeys or []]
        self._columns = [*self._data, *keys]
        self._schema = pa.schema([(name, arrow_type(kind)) for name, kind in self._columns])
        self._divider = Divider(info.table, zone=plan.zone)
        self._storage = Storage(info.location)
        self._folder = self._storage.path(staged_folder(plan))
        self._open: OrderedDict[tuple[str, int], Any] = OrderedDict()
        self._files: list[Staged] = []
        self._begun: Counter[tuple[str, int]] = Counter()
        self._may_begin_again = not self._divider.buckets and not plan.overwrite

    def append(self, batch: pa.RecordBatch) -> None:
        """Write rows whose columns are those that were given; others have their defaults. DoesNotFit, ConstraintViolated, CanNotWrite."""
        columns = [
            self._fitted(name, kind, batch.column(self._given[name]))
            if name in self._given
            else pa.repeat(pa.scalar(self._plan.defaults.get(name), arrow_type(kind)), len(batch))
            for name, kind in self._columns
        ]
        rows = pa.record_batch(columns, schema=self._schema)
        self._plan.constraints.check_not_null(rows)
        for portion in self._divider.divide(rows):
            self._file(portion).append(self._plan.write_id, portion.rows)

    def _fitted(self, name: str, kind: str, values: Any) -> Any:
        """Return values, whose times are Spark's, as the column holds them. DoesNotFit."""
        local = cast(values, with_timestamps(values.type, pa.timestamp("us")), self._plan.zone)
        try:
            if pa.types.is_nested(local.type):
                return exact(local, kind)
            return checked(local.cast(arrow_type(kind)), kind, local)
        except (ValueError, pa.ArrowException) as error:
            raise DoesNotFit(f"{self._plan.info.full_name}: column {name} is {kind}: {error}") from error

    def close(self) -> list[Staged]:
        """End the files and return them with their places. CanNotWrite."""
        while self._open:
            self._open.popitem()[1].close()
        return self._files

    def remove(self) -> None:
        """Remove all files of the attempt."""
        while self._open:
            self._open.popitem()[1].remove()
        self._storage.remove_directory(self._folder)

    def _file(self, portion: Portion) -> Any:
        key = (portion.partition, portion.bucket)
        if key in self._open:
            self._open.move_to_end(key)
            return self._open[key]
        while self._may_begin_again and len(self._open) >= MAX_OPEN_FILES:
            ended = next((each for each in self._open if self._begun[each] < FILES_OF_A_TASK), None)
            if ended is None:
                break
            self._open.pop(ended).close()
        file = self._open[key] = self._begin(key, self._begun[key])
        self._begun[key] += 1
        return file

    def _begin(self, key: tuple[str, int], again: int) -> Any:
        info, plan = self._plan.info, self._plan
        directory = f"{self._folder}/{len(self._files)}"
        compression = info.parameters.get("orc.compress", "snappy").lower()
        bucketed = bool(self._divider.buckets)
        bucket = key[1] if bucketed else self._task
        if info.is_insert_only:
            number = self._task if bucketed else again
            name = f"{bucket:06d}_0" + (f"_copy_{number}" if number and not (plan.overwrite and bucketed) else "")
            path = f"{directory}/{name}"
            self._files.append(Staged(path, key[0], 0, name))
            self._storage.make_directory(directory, versioned=False)
            if info.format[0] == "parquet":
                return PlainParquetFile(self._storage, path, pa.schema(list(self._schema)[: len(self._data)]), plan.zone)
            return PlainOrcFile(self._storage, path, self._data, compression)
        group, bucket = (0, bucket) if bucketed else divmod(bucket, buckets.MAX_BUCKETS)
        statement = 0 if plan.overwrite else self._task if bucketed else group * FILES_OF_A_TASK + again
        name = buckets.file_name(bucket)
        self._files.append(Staged(f"{directory}/{name}", key[0], statement, name))
        return BucketFile(
            self._storage,
            directory,
            bucket,
            event_type(self._data),
            compression,
            grows=False,
            statement=statement,
        )
