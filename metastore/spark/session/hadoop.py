"""List, read and move files through Spark's own Hadoop file systems, with Spark's own configuration. Runs on the driver only."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from metastore.acid.durable import local_path, sync_placed
from metastore.acid.files import FileError, Status
from metastore.spark.session.java import java_class

_STATUS = re.compile(r"\w+\{path=(.*?); isDirectory=(true|false)(?:; length=(\d+))?; ")


class HadoopFiles:
    """The file systems that a Spark session reaches; see `acid.files.Files`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._path = java_class(spark, "org.apache.hadoop.fs.Path")
        self._configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001  # PySpark's only way to Hadoop's file systems

    def _at(self, path: str) -> tuple[Any, Any]:
        java = self._path(path)
        return java.getFileSystem(self._configuration), java

    def list(self, path: str) -> list[Status]:
        """Return the entries of a directory; none when it is missing. FileError."""
        system, java = self._at(path)
        try:
            # One text for all: each attribute of each file would be a call into the JVM of its own.
            text = java_class(self._spark, "org.apache.commons.lang3.ArrayUtils").toString(system.listStatus(java))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception.getClass().getName()):
                return []
            raise FileError(f"{path} can not be listed: {error.java_exception}") from error
        return [Status(found, is_directory == "true", int(length or 0)) for found, is_directory, length in _STATUS.findall(text)]

    def read(self, path: str, start: int = 0) -> bytes:
        """Return the content of a small file, or the rest after its first `start` bytes. FileError."""
        system, java = self._at(path)
        try:
            with_stream = system.open(java)
            try:
                with_stream.seek(start)
                return bytes(java_class(self._spark, "org.apache.commons.io.IOUtils").toByteArray(with_stream))
            finally:
                with_stream.close()
        except Py4JJavaError as error:
            raise FileError(f"{path} can not be read: {error.java_exception}") from error

    def read_end(self, path: str, size: int) -> bytes:
        """Return the last `size` bytes of a file, or all of it. FileError."""
        system, java = self._at(path)
        try:
            length = int(system.getFileStatus(java).getLen())
        except Py4JJavaError as error:
            raise FileError(f"{path} can not be read: {error.java_exception}") from error
        return self.read(path, max(0, length - size))

    def write(self, path: str, content: bytes) -> None:
        """Make a small file. FileError."""
        system, java = self._at(path)
        try:
            stream = system.create(java, True)
            stream.write(bytearray(content))
            stream.close()
        except Py4JJavaError as error:
            raise FileError(f"{path} can not be written: {error.java_exception}") from error

    def append(self, path: str, content: bytes) -> bool:
        """Add to the end of a file; return False where the file system has only whole files, such as S3. FileError."""
        system, java = self._at(path)
        # Hadoop's usual local file system keeps checksums in files beside, which would no longer fit.
        checked = java_class(self._spark, "py4j.reflection.TypeUtil").isInstanceOf("org.apache.hadoop.fs.ChecksumFileSystem", system)
        try:
            stream = (system.getRawFileSystem() if checked else system).append(java)
        except Py4JJavaError:
            return False
        try:
            stream.write(bytearray(content))
            stream.close()
            if checked:
                system.getRawFileSystem().delete(system.getChecksumFile(java), False)
        except Py4JJavaError as error:
            raise FileError(f"{path} can not be added to: {error.java_exception}") from error
        return True

    def make(self, path: str) -> None:
        """Make a directory with its parents. FileError."""
        system, java = self._at(path)
        try:
            made = system.mkdirs(java)
        except Py4JJavaError as error:
            raise FileError(f"{path} can not be made: {error.java_exception}") from error
        if not made:
            raise FileError(f"{path} can not be made: a file may be in the way")

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name. FileError when the target is there or its parent is not."""
        system, old = self._at(source)
        try:
            done = system.rename(old, self._path(target))
        except Py4JJavaError as error:
            raise FileError(f"{source} can not be renamed to {target}: {error.java_exception}") from error
        if not done:
            raise FileError(f"{source} can not be renamed to {target}")

    def sync(self, directory: str, top: str) -> None:
        """Write a directory through to the disk, as `durable.sync_placed` does, where that is the machine's own. FileError."""
        system, java = self._at(directory)
        path = local_path(str(system.makeQualified(java).toString()))
        if path is None:
            return
        try:
            sync_placed([path], local_path(top) or path)
        except OSError as error:
            raise FileError(f"{error.filename} can not be written through to the disk: {error.strerror}") from error

    def copy(self, source: str, target: str) -> None:
        """Copy a file. FileError."""
        system, old = self._at(source)
        there, new = self._at(target)
        try:
            java_class(self._spark, "org.apache.hadoop.fs.FileUtil").copy(system, old, there, new, False, self._configuration)
        except Py4JJavaError as error:
            raise FileError(f"{source} can not be copied to {target}: {error.java_exception}") from error

    def delete(self, path: str) -> None:
        """Remove a file or directory with all its content. A missing one is not an error. FileError."""
        system, java = self._at(path)
        try:
            system.delete(java, True)
        except Py4JJavaError as error:
            raise FileError(f"{path} can not be deleted: {error.java_exception}") from error
