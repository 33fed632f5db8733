"""Find the id of the query that a call was made for, where its client sends it. This module never looks at a reply.

Hive and Trino send it as the agent of a lock (`agentInfo`), Trino also in the parameters of tables and partitions that it makes
(`trino_query_id`); any client can put it into an environment context (`query.id`). Spark sends none by itself.
Sources: Hive's DbTxnManager, Trino's ThriftHiveMetastore and HiveMetadata.
"""

from __future__ import annotations

from typing import Any

from thriftpy2.thrift import TPayload, TType

from metastore import idl

IN_CONTEXT = ("query.id", "hive.query.id", "hive_query_id", "trino_query_id", "query_id", "queryId")
IN_PARAMETERS = ("trino_query_id", "presto_query_id")
_NO_AGENT = "Unknown"
"""The agent that Hive's clients send where they name none."""
_MAX_LENGTH = 200

Place = tuple[tuple[str, ...], tuple[str, ...]]
"""The path of a field from the arguments, such as `rqst`, `agentInfo`; and the keys to try in it, if it is a map."""


def places(args: type[TPayload]) -> tuple[Place, ...]:
    """Return the places in the arguments that may hold a query's id, the surest first."""
    contexts: list[Place] = []
    agents: list[Place] = []
    parameters: list[Place] = []
    level: list[tuple[tuple[str, ...], Any]] = [((), args)]
    for _ in range(3):
        below = []
        for path, cls in level:
            for field in cls.thrift_spec.values():
                struct = _struct(field)
                here = (*path, field[1])
                if struct is idl.EnvironmentContext:
                    contexts.append(((*here, "properties"), IN_CONTEXT))
                elif struct in (idl.Table, idl.Partition):
                    parameters.append(((*here, "parameters"), IN_PARAMETERS))
                elif struct is not None:
                    below.append((here, struct))
                elif field[1] == "agentInfo":
                    agents.append((here, ()))
        level = below
    return (*contexts, *agents, *parameters)


def _struct(field: Any) -> Any:
    """Return the struct of a field, or of the list in it; None for any other field."""
    if field[0] == TType.STRUCT:
        return field[2]
    if field[0] == TType.LIST and isinstance(field[2], tuple) and field[2][0] == TType.STRUCT:
        return field[2][1]
    return None


def find(where: tuple[Place, ...], args: Any) -> str:
    """Return the query's id, "" if the arguments hold none."""
    for path, keys in where:
        value = args
        for step in path:
            value = getattr(value, step, None)
            if isinstance(value, list):
                value = value[0] if value else None
        for each in [value] if not keys else map((value or {}).get, keys):
            if isinstance(each, str) and each and each != _NO_AGENT:
                return each[:_MAX_LENGTH]
    return ""
