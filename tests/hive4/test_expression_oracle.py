"""Random partition expressions, serialised by Hive's classes: every partition is judged as Hive's own metastore judges it."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from metastore.rules.filters import compile_expression, leading_prefixes, read_expression, weakened
from metastore.rules.values.partition_names import DEFAULT_PARTITION, make_partition_name, partition_values
from tests.support.engines.hive import java, settings, variables, write_configuration
from tests.support.engines.hive_expressions import EXPRESSIONS, KEYS, PARTITIONS
from tests.support.engines.jars import ARTIFACTS, HIVE, jars_of

pytestmark = pytest.mark.slow

JAVA = Path(__file__).with_name("Expressions.java")
LITERALS = {
    "ds": ("'a'", "'b'", "'2020'", "'x y'", "'été'", "''"), "n": ("5", "6", "3", "2147483647"), "b": ("5", "5000000000"), "s": ("3", "4"),
    "t": ("3", "5"), "d": ("DATE '2020-01-01'", "DATE '2020-01-02'", "'2020-01-01'"), "dc": ("1.5", "2.25", "3"),
    "ts": ("TIMESTAMP '2020-01-01 10:00:00'", "TIMESTAMP '2020-01-01 10:00:00.123'", "TIMESTAMP '2020-01-02 00:00:00'"),
    "v": ("'abc'", "'a'", "'b'"), "c": ("'abc'", "'a'"), "g": ("2.5", "3"), "o": ("true", "false"),
}  # fmt: skip
VALUES = {
    "ds": ("a", "b", "2020", "x y", "été", "5"), "n": ("5", "6", "-5", "3", "007"), "b": ("5", "6", "5000000000"), "s": ("3", "4"),
    "t": ("3", "5"), "d": ("2020-01-01", "2020-01-02", "2019-12-31"), "dc": ("1.5", "2.25", "3", "-1", "1.50"),
    "ts": ("2020-01-01 10:00:00", "2020-01-01 10:00:00.123", "2020-01-02 00:00:00"), "v": ("abc", "a", "b"), "c": ("abc", "a"),
    "f": ("1.5", "2"), "g": ("2.5", "3", "3.5"), "o": ("true", "false"),
}  # fmt: skip


def ask_hive(folder: Path, asked: list[tuple[str, list[str]]]) -> list[tuple[bytes, bool, set[str]] | None]:
    """Return of each expression its bytes, whether a partition is unknown, and the kept partitions; None for one that Hive refuses."""
    write_configuration(folder, settings("", folder, folder))
    keys = ";".join(f"{name} {kind}" for name, kind in KEYS)
    lines = "".join(f"{keys}\t{text}\t{'|'.join(names)}\n" for text, names in asked)
    done = subprocess.run(
        java(folder, jars_of(f"hive-{HIVE}", ARTIFACTS), str(JAVA)),
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        env=variables(folder),
        cwd=folder,
    )
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(answers) == len(asked), done.stderr[-3000:]
    return [
        None if answer[0] == "error" else (bytes.fromhex(answer[0]), answer[1] == "true", set(filter(None, answer[2].split("|"))))
        for answer in answers
    ]


def condition(rng: random.Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.6:
        kind = rng.choice(("AND", "OR", "NOT"))
        inner = [f"({condition(rng, depth - 1)})" for _ in range(1 if kind == "NOT" else 2)]
        return f"NOT {inner[0]}" if kind == "NOT" else f" {kind} ".join(inner)
    key = rng.choice(sorted(LITERALS))
    one, other = rng.choice(LITERALS[key]), rng.choice(LITERALS[key])
    negation = rng.choice(("", "NOT "))
    return rng.choice((
        *(f"{key} {sign} {one}" for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")), f"{one} < {key}",
        f"{key} {negation}IN ({one}, {other})",
        f"{key} {negation}BETWEEN {one} AND {other}", f"{key} IS {negation}NULL", f"{key} = '{DEFAULT_PARTITION}'",
        f"cast({key} AS string) = cast({one} AS string)",
    ))  # fmt: skip


def test_hive_still_writes_the_files_that_other_tests_read(tmp_path: Path) -> None:
    texts = sorted({text for text, version in EXPRESSIONS if version == HIVE})
    if not texts:
        pytest.skip(f"nothing is recorded of Hive {HIVE}")
    for text, answer in zip(texts, ask_hive(tmp_path, [(text, PARTITIONS) for text in texts]), strict=True):
        wanted = EXPRESSIONS[text, HIVE]
        assert answer is not None, text
        assert answer[1:] == (wanted.unknown, wanted.kept), text
        assert answer[0] == wanted.data or text.startswith("year"), text  # its calendar is serialised with the current time


def test_random_expressions_keep_the_same_partitions_as_hive(tmp_path: Path) -> None:
    rng = random.Random(20)
    asked = []
    for _ in range(1500):
        names = {
            make_partition_name(
                [name for name, _ in KEYS], [rng.choice((*VALUES[name], *VALUES[name], DEFAULT_PARTITION)) for name, _ in KEYS]
            )
            for _ in range(30)
        }
        asked.append((condition(rng), sorted(names)))
    same = 0
    answers = list(zip(asked, ask_hive(tmp_path, asked), strict=True))
    for (text, names), answer in answers:  # type: ignore[assignment]
        if answer is None:
            continue
        data, unknown, kept = answer
        tree = read_expression(data)
        judge = compile_expression(tree, KEYS)
        verdicts = {name: judge(partition_values(name)) for name in names}
        certain = {name for name, verdict in verdicts.items() if verdict}
        possible = {name for name, verdict in verdicts.items() if verdict is not False}
        assert kept <= possible, text
        assert certain <= kept, text
        prefixes = leading_prefixes(weakened(tree), KEYS)
        assert prefixes is None or all(any(name.startswith(prefix) for prefix in prefixes) for name in kept), text
        same += possible == kept and (possible != certain) == unknown
    readable = sum(answer is not None for _, answer in answers)
    assert readable > 1200
    assert same > 0.9 * readable
