"""All private interfaces of Spark's JVM that SQL needs: parser, plans, frames of plans. `tests/spark/session/test_doors.py` checks them.

PySpark has no public name for any of it; the same classes exist from 3.5 to the newest release, except those that `_classic` finds.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name that everyone gives it

from metastore.spark.session.java import java_class

Node = Any
"""A node of a plan, or an expression, in the JVM."""
_SUBQUERIES = ("ListQuery", "ScalarSubquery", "Exists", "LateralSubquery", "FunctionTableSubqueryArgumentExpression")
_TABLES = {"LogicalRelation": "catalogTable", "HiveTableRelation": "tableMeta"}
"""The attribute of a plan's leaf that names the table that Spark itself would read, by the leaf's class."""
_SHOWS_RELATIONS = re.compile(
    r"'?(?:Project|Filter|Sort|GlobalLimit|LocalLimit|Aggregate|Distinct|Union|Join|CTE|UnresolvedHaving|UnresolvedRelation|SubqueryAlias"
    r"|LocalRelation|UnresolvedInlineTable|InsertIntoStatement|OverwriteByExpression)\b"
)
"""The first word of a parsed plan's text, for plans whose text shows all relations, also of subqueries."""
_RELATION = re.compile(r"\bUnresolvedRelation \[(\w+(?:, \w+)*)\]")
_READ = re.compile(r"\bHiveTableRelation \[`\w+`\.`(\w+)`\.`(\w+)`,|(?<!\w)Relation \w+\.(\w+)\.(\w+)\[")
_ANY_READ = re.compile(r"\bHiveTableRelation\b|(?<!\w)Relation [^\[]")


def kind(node: Node) -> str:
    """Return the class of a node, without its package."""
    return str(node.getClass().getSimpleName())


def items(sequence: Any) -> list[Any]:
    """Return the elements of a sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.size())]


def option(value: Any) -> Any:
    """Return the value of an Option of Scala, None without one."""
    return value.get() if value.isDefined() else None


def span(node: Node) -> tuple[int, int]:
    """Return the place of a node in the text that was parsed: its first character, and the one behind its last."""
    origin = node.origin()
    return int(option(origin.startIndex())), int(option(origin.stopIndex())) + 1


def names_of(parts: Any) -> list[str]:
    """Return a sequence of names."""
    return [str(part) for part in items(parts)]


def member(node: Node, name: str) -> Any:
    """Return a member of a node, None where the release of Spark does not have it."""
    try:
        return getattr(node, name)()
    except Py4JError:
        return None


def pair(entry: Any) -> tuple[Any, Any]:
    """Return the first two members of a tuple of Scala."""
    return entry._1(), entry._2()  # noqa: SLF001  # their names in Scala


def pairs(mapping: Any) -> Iterator[tuple[Any, Any]]:
    """Yield keys and values of a map of Scala."""
    entries = mapping.iterator()
    while entries.hasNext():
        yield pair(entries.next())


class Doors:
    """The private interfaces of Spark for one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._session: Any = spark._jsparkSession  # noqa: SLF001  # see the module
        state = self._session.sessionState()
        self._parser, self._catalog = state.sqlParser(), state.catalog()
        patterns = java_class(spark, "org.apache.spark.sql.catalyst.trees.TreePattern")
        self._has_plan, self._is_parameter = patterns.PLAN_EXPRESSION(), patterns.PARAMETER()

    def key(self) -> str:
        """Return the identity of this session among others of the same JVM."""
        return str(self._session.sessionUUID())

    def substituted(self, text: str) -> str:
        """Return a text with its variables, `${name}`, replaced as Spark does before it parses."""
        if "${" not in text:
            return text
        return str(java_class(self._spark, "org.apache.spark.sql.internal.VariableSubstitution")().substitute(text))

    def parse(self, text: str) -> Node:
        """Return the plan of a statement, without any look-up yet. ParseException."""
        return self._parser.parsePlan(text)

    def named(self, plan: Node) -> set[tuple[str, ...]] | None:
        """Return the names of a parsed plan's relations, and more, by one call; None where the plan's text does not show all relations."""
        text = str(plan.toString())
        if not _SHOWS_RELATIONS.match(text):
            return None
        found = _RELATION.findall(text)
        return {tuple(name.split(", ")) for name in found} if len(found) == text.count("UnresolvedRelation [") else None

    def temporary_view(self, names: Sequence[str]) -> int | None:
        """Return a number that is unique to the temporary view of a name among all that had the name; None without a view."""
        if len(names) > 1 and not self._catalog.isTempView(self.sequence(names)):
            return None
        found = self._catalog.getRawTempView(names[0]) if len(names) == 1 else self._catalog.getRawGlobalTempView(names[-1])
        return int(java_class(self._spark, "java.lang.System").identityHashCode(found.get())) if found.isDefined() else None

    def sequence(self, values: Sequence[Any]) -> Any:
        """Return a sequence of Scala."""
        return java_class(self._spark, "org.apache.spark.api.python.PythonUtils").toSeq(list(values))

    def column(self, expression: Node) -> Column:
        """Return a parsed expression as a column."""
        made: Any = Column
        utils = self._classic("ExpressionUtils")
        found = java_class(self._spark, "org.apache.spark.sql.Column")(expression) if utils is None else utils.column(expression)
        return made(found)  # type: ignore[no-any-return]

    def frame(self, plan: Node) -> DataFrame:
        """Return a parsed query as a frame. AnalysisException."""
        dataset = self._classic("Dataset") or java_class(self._spark, "org.apache.spark.sql.Dataset")
        return DataFrame(dataset.ofRows(self._session, plan), self._spark)

    def literal(self, value: Any) -> str:
        """Return a value of Python as SQL."""
        column: Any = value if isinstance(value, Column) else F.lit(value)
        converter = self._converter()
        expression = column._jc.expr() if converter is None else converter.apply(column._jc.node())  # noqa: SLF001  # see the module
        return str(expression.sql())

    def _converter(self) -> Any:
        """Return the converter of Spark 4's columns to expressions, None on 3.5: a Scala object, which has no static methods."""
        found = self._classic("ColumnNodeToExpressionConverter$")
        return None if found is None else getattr(found, "MODULE$")

    def _classic(self, name: str) -> Any:
        """Return a class of Spark 4's package `classic`, None on 3.5."""
        found = java_class(self._spark, f"org.apache.spark.sql.classic.{name}")
        return found if isinstance(found, JavaClass) else None

    def subqueries(self, node: Node) -> Iterator[Node]:
        """Yield the plans of the subqueries in the expressions of one node of a plan."""
        if node.containsPattern(self._has_plan):
            for expression in items(node.expressions()):
                yield from self._plans(expression)

    def _plans(self, expression: Node) -> Iterator[Node]:
        if expression.containsPattern(self._has_plan):
            if kind(expression) in _SUBQUERIES:
                yield expression.plan()
            for child in items(expression.children()):
                yield from self._plans(child)

    def parameters(self, plan: Node) -> Iterator[tuple[str | None, int, int]]:
        """Yield (name, or None for `?`; start; end) of the parameters of a plan."""
        if kind(plan) == "UnresolvedWith":
            for relation in items(plan.cteRelations()):
                yield from self.parameters(pair(relation)[1])
        elif kind(plan) == "InsertIntoStatement" or plan.containsPattern(self._is_parameter):
            for expression in items(plan.expressions()):
                yield from self._parameters(expression)
        for child in items(plan.children()):
            yield from self.parameters(child)

    def _parameters(self, expression: Node) -> Iterator[tuple[str | None, int, int]]:
        if not expression.containsPattern(self._is_parameter):
            return
        if kind(expression) in ("NamedParameter", "PosParameter"):
            yield (str(expression.name()) if kind(expression) == "NamedParameter" else None, *span(expression))
        if kind(expression) in _SUBQUERIES:
            yield from self.parameters(expression.plan())
        for child in items(expression.children()):
            yield from self._parameters(child)

    def inner_query(self, plan: Node, query: Node) -> Node:
        """Return a node, such as a WITH, over another child."""
        return plan.withNewChildren(self.sequence([query]))


def read_by_spark(frame: DataFrame, plain: Container[str] = ()) -> list[str]:
    """Return the transactional tables, `database.table`, that Spark itself reads for a frame: without their transactions.

    `plain` are tables, `database.table`, that are known not to be transactional.
    """
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001  # see the module
    text = str(plan.toString())
    found = [f"{hive_database or database}.{hive or name}" for hive_database, hive, database, name in _READ.findall(text)]
    if len(found) == len(_ANY_READ.findall(text)) and all(name in plain for name in found):
        return []
    return [name for each in [plan, *items(plan.subqueriesAll())] for name in _transactional_leaves(each)]


def _transactional_leaves(plan: Node) -> Iterator[str]:
    """Yield the transactional tables that the leaves of an analysed plan read."""
    for leaf in items(plan.collectLeaves()):
        name = _TABLES.get(kind(leaf))
        table = None if name is None else getattr(leaf, name)()
        if name == "catalogTable":
            table = option(table)
        if table is not None and (option(table.properties().get("transactional")) or "").lower() == "true":
            yield str(table.identifier().unquotedString())


def is_command(frame: DataFrame) -> bool:
    """Return whether a frame holds the answer of a command, which has run, and reads nothing any more."""
    return kind(frame._jdf.queryExecution().commandExecuted()) in ("CommandResult", "LocalRelation")  # noqa: SLF001  # see the module


def explained(frame: DataFrame, mode: str) -> str:
    """Return the output of EXPLAIN for a frame; `mode` is simple, extended, codegen, cost or formatted."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001  # see the module
    return str(java_class(frame.sparkSession, "org.apache.spark.sql.api.python.PythonSQLUtils").explainString(execution, mode))
