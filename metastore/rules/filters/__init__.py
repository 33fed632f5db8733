"""Filter strings of every client generation: parse them, and apply them to partitions or tables.

`parse` reads the text; `select_partitions` applies the tree to partitions, `compile_table_filter` turns it into a predicate over tables;
`leading_prefixes` returns the ranges of partition names from which a filter can select. Nothing here reads a database: the tree decides,
and a store's narrowing of its reading must agree with it.

Hive's own clients serialise their expressions instead: `read_expression` reads those, `compile_expression` evaluates partitions by them.
"""

from metastore.rules.filters.expressions import read_expression
from metastore.rules.filters.kryo import NotUnderstood, is_expression
from metastore.rules.filters.nodes import And, Between, Comparison, In, Node, Or
from metastore.rules.filters.parser import parse
from metastore.rules.filters.partitions import Selection, select_partitions
from metastore.rules.filters.prefixes import leading_prefixes, united_prefixes
from metastore.rules.filters.pruning import compile_expression, weakened
from metastore.rules.filters.tables import TableFacts, compile_table_filter, keys_in
from metastore.rules.values.comparable import Constant

__all__ = [
    "And",
    "Between",
    "Comparison",
    "Constant",
    "In",
    "Node",
    "NotUnderstood",
    "Or",
    "Selection",
    "TableFacts",
    "compile_expression",
    "compile_table_filter",
    "is_expression",
    "keys_in",
    "leading_prefixes",
    "parse",
    "read_expression",
    "select_partitions",
    "united_prefixes",
    "weakened",
]
