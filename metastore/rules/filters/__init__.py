"""Filter strings of every client generation: parse them, and compile them to predicates over partitions or tables.

`parse` reads the text; `compile_partition_filter` and `compile_table_filter` turn the tree into a predicate;
`leading_prefixes` says which ranges of partition names a predicate can select from. Nothing here reads a database: the
predicate is the truth, and whatever a store does to narrow its reading must agree with it.

Hive's own clients serialise their expressions instead: `read_expression` reads those, `compile_expression` judges partitions by them.
"""

from metastore.rules.filters.expressions import read_expression
from metastore.rules.filters.kryo import NotUnderstood, is_expression
from metastore.rules.filters.nodes import And, Between, Comparison, Constant, In, Node, Or
from metastore.rules.filters.parser import parse
from metastore.rules.filters.partitions import compile_partition_filter
from metastore.rules.filters.prefixes import leading_prefixes
from metastore.rules.filters.pruning import compile_expression, weakened
from metastore.rules.filters.tables import TableFacts, compile_table_filter

__all__ = [
    "And",
    "Between",
    "Comparison",
    "Constant",
    "In",
    "Node",
    "NotUnderstood",
    "Or",
    "TableFacts",
    "compile_expression",
    "compile_partition_filter",
    "compile_table_filter",
    "is_expression",
    "leading_prefixes",
    "parse",
    "read_expression",
    "weakened",
]
