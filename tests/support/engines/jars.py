"""Hive's jars, fetched through Maven, and our Java programs compiled against them. It runs none of them.

They are kept in METASTORE_TEST_JARS, or below the system's folder for temporary files: 450 MB, one minute the first time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HIVE = os.environ.get("METASTORE_TEST_HIVE", "4.0.1")
"""The release whose engine runs: 4.1.0 works as well, and on Java 21 (`java` and `javac`) 4.2.0."""
STREAMING = "3.1.3"
"""The last release whose streaming ingest is in Maven's repository."""
_SINCE_4_1 = not HIVE.startswith("4.0.")
_HADOOP, _TEZ = ("3.4.2", "0.10.5") if _SINCE_4_1 else ("3.3.6", "0.10.4")
ARTIFACTS = (
    *(
        f"org.apache.hive:hive-{part}:{HIVE}"
        for part in (
            ("exec", "common", "standalone-metastore-common") if _SINCE_4_1 else ("exec", "service", "standalone-metastore-server")
        )
    ),
    *(
        f"org.apache.hadoop:hadoop-{part}:{_HADOOP}"
        for part in (
            "client",
            "common",
            "hdfs",
            "mapreduce-client-common",
            "mapreduce-client-jobclient",
        )
    ),
    *(f"org.apache.tez:tez-{part}:{_TEZ}" for part in ("dag", "mapreduce", "runtime-library")),
    "com.google.guava:guava:28.1-jre",
    "com.fasterxml.jackson.core:jackson-annotations:2.16.1",
    *(("com.cronutils:cron-utils:9.2.0", "org.antlr:antlr-runtime:3.5.2") if _SINCE_4_1 else ()),
)
INGEST_ARTIFACTS = (
    f"org.apache.hive:hive-streaming:{STREAMING}", f"org.apache.hive:hive-cli:{STREAMING}",
    "org.apache.hadoop:hadoop-client:3.1.0", "org.apache.hadoop:hadoop-common:3.1.0",
)  # fmt: skip
RANGER = "2.9.0"
RANGER_ARTIFACTS = (
    f"org.apache.ranger:ranger-plugins-common:{RANGER}", f"org.apache.ranger:ranger-authz-api:{RANGER}",
    "org.apache.hadoop:hadoop-common:3.4.2",
)  # fmt: skip
LEFT_OUT = (
    "org.pentaho:*", "org.glassfish:javax.el", "org.pac4j:pac4j-saml-opensamlv3", "net.shibboleth.tool:*",
    "org.apache.hadoop:hadoop-client-api", "org.slf4j:slf4j-reload4j", "org.slf4j:slf4j-log4j12", "jdk.tools:jdk.tools",
)  # fmt: skip
"""Dependencies of Hive that are not needed here; some are in no public repository."""


def _tag(name: str, *inner: str) -> str:
    return f"<{name}>{''.join(inner)}</{name}>"


def _coordinates(artifact: str) -> str:
    return "".join(_tag(*pair) for pair in zip(("groupId", "artifactId", "version"), artifact.split(":"), strict=False))


def _project(artifacts: Sequence[str]) -> str:
    left_out = _tag("exclusions", *(_tag("exclusion", _coordinates(each)) for each in LEFT_OUT))
    dependencies = _tag("dependencies", *(_tag("dependency", _coordinates(each), left_out) for each in artifacts))
    return _tag("project", _tag("modelVersion", "4.0.0"), _coordinates("test:hive:1"), _tag("packaging", "pom"), dependencies)


@contextmanager
def _fetched(name: str, artifacts: Sequence[str]) -> Iterator[Path]:
    """Yield the folder whose `jars` holds artifacts and all their dependencies. It is locked against other processes meanwhile."""
    folder = Path(os.environ.get("METASTORE_TEST_JARS") or tempfile.gettempdir()) / f"metastore-test-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted, new = folder / "pom.xml", folder / "pom.new.xml"
        if not wanted.exists() or wanted.read_text() != _project(artifacts):
            shutil.rmtree(folder / "jars", ignore_errors=True)
            new.write_text(_project(artifacts))
            goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
            target = f"-DoutputDirectory={folder / 'jars'}"
            subprocess.run(["mvn", "-q", "-B", "-f", str(new), goal, "-DincludeScope=runtime", target], check=True)
            new.rename(wanted)
        yield folder


def jars_of(name: str, artifacts: Sequence[str]) -> str:
    """Return a class path of artifacts and all their dependencies. CalledProcessError."""
    with _fetched(name, artifacts) as folder:
        return f"{folder}/jars/*"


def _with_program(name: str, artifacts: Sequence[str], source: Path, kept: str = "classes") -> str:
    with _fetched(name, artifacts) as folder:
        classes = folder / kept
        if not classes.exists() or classes.stat().st_mtime < source.stat().st_mtime:
            shutil.rmtree(classes, ignore_errors=True)
            subprocess.run(["javac", "-nowarn", "-cp", f"{folder}/jars/*", "-d", str(classes), str(source)], check=True)
        return f"{classes}:{folder}/jars/*"


def classpath() -> str:
    """Return the class path of Hive's engine with HiveSessions; missing jars are fetched, HiveSessions compiled. CalledProcessError."""
    return _with_program(f"hive-{HIVE}", ARTIFACTS, Path(__file__).with_name("HiveSessions.java"))


def ingest_classpath() -> str:
    """Return the class path of Hive's streaming ingest with Ingest. CalledProcessError."""
    return _with_program(f"hive-streaming-{STREAMING}", INGEST_ARTIFACTS, Path(__file__).with_name("Ingest.java"))


def client_classpath(release: str = HIVE) -> str:
    """Return the class path of a metastore client, of HIVE or of STREAMING, with HiveClient. CalledProcessError."""
    source = Path(__file__).with_name("HiveClient.java")
    if release == STREAMING:
        return _with_program(f"hive-streaming-{STREAMING}", INGEST_ARTIFACTS, source, "client")
    return _with_program(f"hive-{HIVE}", ARTIFACTS, source, "client")


def ranger_classpath() -> str:
    """Return the class path of Ranger's policy engine with RangerEngine. CalledProcessError."""
    return _with_program(f"ranger-{RANGER}", RANGER_ARTIFACTS, Path(__file__).with_name("RangerEngine.java"))


_BESIDE = (
    "org.apache.hadoop:hadoop-client-api:3.3.6", "org.apache.hadoop:hadoop-client-runtime:3.3.6", "org.postgresql:postgresql:42.7.4",
    "org.mariadb.jdbc:mariadb-java-client:2.7.12", "commons-collections:commons-collections:3.2.2", "org.slf4j:slf4j-api:1.7.36",
)  # fmt: skip
SERVERS = {
    "4.0.1": (
        "hive-standalone-metastore-server", *_BESIDE, "org.apache.hadoop:hadoop-hdfs:3.3.6",
        "org.apache.httpcomponents:httpclient:4.5.13", "com.google.code.gson:gson:2.9.0", "org.codehaus.jettison:jettison:1.5.4",
        "commons-io:commons-io:2.11.0", "javax.servlet:javax.servlet-api:3.1.0",
    ),
    "3.1.3": (
        "hive-standalone-metastore", *_BESIDE, "commons-cli:commons-cli:1.2", "commons-logging:commons-logging:1.1.3",
        "org.codehaus.jackson:jackson-mapper-asl:1.9.13", "commons-codec:commons-codec:1.11", "org.codehaus.woodstox:stax2-api:4.2.1",
    ),
}  # fmt: skip
"""Releases of Java's metastore server that run by themselves: the artifact, the jars that a Hadoop installation puts beside it, and drivers
of databases."""
INSIDE = {"3.1.3": ("org.apache.hive.hcatalog:hive-hcatalog-server-extensions:3.1.3", "org.apache.hive:hive-exec:3.1.3")}
"""Further jars of a release, without their dependencies: the notification log's listener, which is in no public repository for
4.0.1, and Hive's engine, without which no full ACID table can be made."""


def metastore_server(release: str = "4.0.1") -> tuple[Path, str]:
    """Return the folder of Java's metastore server, with the SQL of its schemas, and its class path. CalledProcessError."""
    name, *beside = SERVERS[release]
    with _fetched(f"metastore-{release}", beside) as folder:
        home = folder / f"apache-hive-metastore-{release}-bin"
        if not (home / "lib").exists():
            _maven("unpack", f"org.apache.hive:{name}:{release}:tar.gz:bin", folder)
            for artifact in INSIDE.get(release, ()):
                _maven("copy", artifact, home / "lib")
        return home, f"{home}/lib/*:{folder}/jars/*"


def _maven(goal: str, artifact: str, folder: Path) -> None:
    goal = f"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:{goal}"
    subprocess.run(["mvn", "-q", "-B", goal, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"], cwd=folder, check=True)
