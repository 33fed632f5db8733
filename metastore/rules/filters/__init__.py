"""Filter strings of every client generation: parse them, and compile them to predicates over partitions or tables.

`parse` reads the text; `compile_partition_filter` and `compile_table_filter` turn the tree into a predicate;
`leading_prefixes` says which ranges of partition names a predicate can select from. Nothing here reads a database: the
predicate is the truth, and whatever a store does to narrow its reading must agree with it.
"""

from metastore.rules.filters.nodes import And, Between, Comparison, Constant, In, Node, Or
from metastore.rules.filters.parser import parse
from metastore.rules.filters.partitions import compile_partition_filter
from metastore.rules.filters.prefixes import leading_prefixes
from metastore.rules.filters.tables import TableFacts, compile_table_filter

__all__ = [
    "And",
    "Between",
    "Comparison",
    "Constant",
    "In",
    "Node",
    "Or",
    "TableFacts",
    "compile_partition_filter",
    "compile_table_filter",
    "leading_prefixes",
    "parse",
]
