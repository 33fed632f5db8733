"""Write ids that are answered without structs read as if each had been one."""

from __future__ import annotations

from metastore.binary import to_bytes
from metastore.idl import AllocateTableWriteIdsResponse, TxnToWriteId
from metastore.wire.write_id_lists import encoded


def test_bytes_and_structs_say_the_same() -> None:
    for numbers in ({}, {1: 1}, {2**62: 5, 3: 2**40}):
        reply = encoded(numbers)
        wanted = AllocateTableWriteIdsResponse(txnToWriteIds=[TxnToWriteId(txnId=key, writeId=each) for key, each in numbers.items()])
        assert reply.encode_success("binary") == to_bytes(wanted)
        assert reply.value() == wanted
