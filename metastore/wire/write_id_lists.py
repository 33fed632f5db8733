"""Answer the write ids of many transactions without a struct for each. Binary protocol only."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from thriftpy2.thrift import TType

from metastore.idl import AllocateTableWriteIdsResponse, TxnToWriteId
from metastore.wire.encoding import Encoded

HEAD = Struct("!bhbi").pack
PAIR = Struct("!bhqbhqb").pack
STOP = b"\0"
(LIST,) = AllocateTableWriteIdsResponse.thrift_spec
TRANSACTION, WRITE_ID = TxnToWriteId.thrift_spec


def encoded(numbers: Mapping[int, int]) -> Encoded:
    """Return the reply that tells write ids by transaction."""
    head = HEAD(TType.LIST, LIST, TType.STRUCT, len(numbers))
    pairs = [PAIR(TType.I64, TRANSACTION, id_, TType.I64, WRITE_ID, number, TType.STOP) for id_, number in numbers.items()]

    def value() -> AllocateTableWriteIdsResponse:
        return AllocateTableWriteIdsResponse(txnToWriteIds=[TxnToWriteId(txnId=id_, writeId=number) for id_, number in numbers.items()])

    return Encoded([head, *pairs, STOP], value)
