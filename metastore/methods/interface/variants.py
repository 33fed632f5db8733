"""Read and write the few structs whose fields changed their type since release 2.3. This module never guesses beyond them.

`docs/interface.md` lists the conflicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thriftpy2.thrift import TPayload, TType

from metastore import idl


def _variant(cls: Any, changed: dict[int, tuple[Any, ...]], name: str) -> type[TPayload]:
    """Return a struct like `cls` with the fields in `changed`; an empty tuple removes one."""
    spec = {fid: field for fid, field in {**cls.thrift_spec, **changed}.items() if field}
    return type(name, (TPayload,), {"thrift_spec": spec, "default_spec": [(field[1], None) for field in spec.values()]})


def _with_one_field(number: int, name: str, inner: type[TPayload]) -> type[TPayload]:
    """Return the struct of a call's arguments or of its result, which has one field."""
    spec = {number: (TType.STRUCT, name, inner, False)}
    return type(f"{inner.__name__}_{name}", (TPayload,), {"thrift_spec": spec, "default_spec": [(name, None)]})


_Partitions23 = _variant(
    idl.AddDynamicPartitions,
    {
        2: (TType.STRING, "dbname", False),
        3: (TType.STRING, "tablename", False),
        4: (TType.LIST, "partitionnames", TType.STRING, False),
        5: (TType.I32, "operationType", False),
        6: (),
    },
    "AddDynamicPartitions",
)
_Insert23 = _variant(
    idl.InsertEventRequestData,
    {
        1: (TType.LIST, "filesAdded", TType.STRING, False),
        2: (TType.LIST, "filesAddedChecksum", TType.STRING, False),
        3: (),
        4: (),
        5: (),
    },
    "InsertEventRequestData",
)
_Event23 = _variant(
    idl.FireEventRequest,
    {
        2: (
            TType.STRUCT,
            "data",
            _variant(
                idl.FireEventRequestData,
                {1: (TType.STRUCT, "insertData", _Insert23, False)},
                "FireEventRequestData",
            ),
            False,
        )
    },
    "FireEventRequest",
)


def _partitions_are_old(args: Any) -> bool:
    return args.rqst is not None and args.rqst.writeid is None and args.rqst.tablename is None


def _take_partitions(args: Any, old: Any) -> None:
    for name in ("dbname", "tablename", "partitionnames", "operationType"):
        setattr(args.rqst, name, getattr(old.rqst, name))


def _insert_may_be_old(args: Any) -> bool:
    data = args.rqst.data if args.rqst is not None else None
    return data is not None and data.insertData is not None and data.insertData.replace is None


def _take_insert(args: Any, old: Any) -> None:
    files = old.rqst.data.insertData.filesAdded
    if files is not None:
        args.rqst.data.insertData.filesAdded = files
        args.rqst.data.insertData.filesAddedChecksum = old.rqst.data.insertData.filesAddedChecksum


@dataclass(frozen=True, slots=True)
class OldRequest:
    """A request that a 2.3 client sends with other fields."""

    suspected: Callable[[Any], bool]
    """A function that returns whether arguments, decoded as today's, could be from 2.3."""
    args: type[TPayload]
    """The argument struct as 2.3 has it."""
    take: Callable[[Any, Any], None]
    """A function that puts the values of the second, decoded as 2.3's, into the first, today's."""


PARTITIONS_OF_2_3 = OldRequest(_partitions_are_old, _with_one_field(1, "rqst", _Partitions23), _take_partitions)
EVENT_OF_2_3 = OldRequest(_insert_may_be_old, _with_one_field(1, "rqst", _Event23), _take_insert)

_OpenTxns23 = _variant(idl.GetOpenTxnsResponse, {2: (TType.SET, "open_txns", TType.I64, False)}, "GetOpenTxnsResponse")


def _open_txns(value: Any) -> TPayload:
    return _OpenTxns23(**vars(value))


@dataclass(frozen=True, slots=True)
class OldResult:
    """A result that a 2.3 client knows with other fields."""

    result: Any
    """The method's result struct as 2.3 has it."""
    value: Callable[[Any], TPayload]
    """A function from today's `success` to the one of 2.3."""


OPEN_TXNS_OF_2_3 = OldResult(_with_one_field(0, "success", _OpenTxns23), _open_txns)
"""In 2.3 the open transactions are a set."""
