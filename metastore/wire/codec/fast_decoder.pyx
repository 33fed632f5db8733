# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Check and decode one message of the binary protocol in a single pass; the compiled twin of `pure.BinaryDecoder`.

No size is trusted: memory is taken for received bytes, and a container can not have more elements than bytes may follow. Parts
that the elements of a list repeat are decoded once: equal bytes are one object, in the places that `limits` names.
"""

import sys

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Copy, PyDict_SetItem
from cpython.list cimport PyList_Append
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from metastore.wire.codec.plans cimport (
    BINARY, BOOL, BYTE, DOUBLE, I16, I32, I64, LIST, MAP, SET, STOP, STRING, STRUCT, Field, Plan, Type, count_slots, plan_of, undeclared,
)

from metastore.wire.codec import limits
from metastore.wire.codec.limits import TooMuchMemory, container_error, depth_error, size_error, version_error
from metastore.wire.sockets.transport import CHUNK, TooLarge

cdef int MAX_DEPTH = limits.MAX_DEPTH
cdef Py_ssize_t TEXT_MEMORY = limits.TEXT_MEMORY
cdef Py_ssize_t LIST_MEMORY = limits.LIST_MEMORY
cdef Py_ssize_t ELEMENT_MEMORY = limits.ELEMENT_MEMORY
cdef Py_ssize_t ENTRY_MEMORY = limits.ENTRY_MEMORY

cdef enum:
    MANY = 8  # elements from which on a list may repeat texts
    TEXTS = 1024
    LONGEST_COMMON = 64  # the most bytes of a text that is looked up among the texts of a list


cdef inline unsigned int _mixed(const char* begin, Py_ssize_t size):
    """Return a number below TEXTS that is the same for equal bytes."""
    cdef uint64_t mixed = size
    cdef uint64_t word
    while size >= 8:
        memcpy(&word, begin, 8)
        mixed = (mixed ^ word) * <uint64_t> 0x9E3779B97F4A7C15
        mixed ^= mixed >> 29
        begin += 8
        size -= 8
    word = 0
    memcpy(&word, begin, size)
    mixed = (mixed ^ word) * <uint64_t> 0x9E3779B97F4A7C15
    return <unsigned int> (mixed >> 54)


cdef inline bint _is(text, const char* begin, Py_ssize_t size) except -1:
    cdef Py_ssize_t own
    cdef const char* data = PyUnicode_AsUTF8AndSize(text, &own)
    return own == size and memcmp(data, begin, size) == 0


cdef class Seen:
    """The last value of a field, the place of its bytes, and the depth to which they may nest."""

    cdef object value
    cdef Py_ssize_t at
    cdef Py_ssize_t size
    cdef int depth


cdef class BinaryDecoder:
    """One message. Its attributes hold the parts that were read so far."""

    cdef readonly str name
    cdef readonly int type
    cdef readonly int seqid
    cdef object _feed
    cdef object _data
    cdef const unsigned char* _base
    cdef Py_ssize_t _size
    cdef Py_ssize_t _at
    cdef Py_ssize_t _limit
    cdef Py_ssize_t _gone  # bytes of the message that are no longer kept
    cdef bint _keeps
    cdef Py_ssize_t _max_container_size
    cdef Py_ssize_t _max_memory
    cdef Py_ssize_t _max_kept
    cdef Py_ssize_t _memory
    cdef Field _field
    cdef Field _invalid
    cdef list _seen
    cdef list _texts
    """Texts of a long list by a number that is made of their bytes: names and parameters are repeated."""

    def __init__(
        self, feed, Py_ssize_t max_message_size, Py_ssize_t max_container_size, Py_ssize_t max_memory=sys.maxsize,
        Py_ssize_t max_kept=sys.maxsize, bint keeps=True,
    ):
        self.name = ""
        self._feed = feed
        self._limit = max_message_size
        self._max_container_size = max_container_size
        self._max_memory = max_memory
        self._max_kept = max_kept
        self._keeps = keeps
        self._data = b""

    @property
    def invalid_text(self):
        """The first field whose bytes are not UTF-8, as `Struct.field`; None if there is none."""
        return None if self._invalid is None else f"{self._invalid.owner.cls.__name__}.{self._invalid.name}"

    def read(self, choose):
        """Return the struct of the message, in the class that `choose` gives for its name and type; None where it gives none.

        Raises Malformed, TooLarge, EndOfStream.
        """
        cdef int32_t size = self._i32()
        cdef int kind
        if size >= 0:
            name = self._raw(size)
            kind = self._byte()
        elif size & <int32_t> 0xFFFF0000 == <int32_t> 0x80010000:
            name = self._raw(self._i32())
            kind = size & 0xFF
        else:
            raise version_error(size)
        self.seqid = self._i32()
        self.name, self.type = name.decode(errors="replace"), kind
        cls = choose(self.name, self.type)
        if cls is None:
            self._skip(STRUCT, MAX_DEPTH)
            return None
        return self._struct(plan_of(cls), MAX_DEPTH)

    def finish(self):
        """Give the bytes beyond the message back to the feed and return the message's bytes."""
        if self._at == self._size:
            return self._data
        self._feed.unread(bytes(self._data[self._at :]))
        return self._data[: self._at]

    cdef inline int _need(self, Py_ssize_t count) except -1:
        if self._at + count > self._size or self._at + count > self._limit:
            self._wait(count)
        return 0

    cdef int _wait(self, Py_ssize_t count) except -1:
        """Receive until `count` bytes are there beyond the bytes that were read."""
        if self._at + count > self._limit:
            raise TooLarge(self._limit + self._gone)
        cdef bytes first
        cdef bytearray data
        if self._at + count > self._max_kept:
            raise TooMuchMemory(self._max_kept)
        if not self._keeps and self._at > CHUNK:
            self._forget()
        if self._size == 0:  # most messages come in one piece, which is read where it is
            self._data = first = self._feed.some(CHUNK)
            self._base = <const unsigned char*> <const char*> first
            self._size = len(first)
        if self._size < self._at + count:
            if not isinstance(self._data, bytearray):
                self._data = bytearray(self._data)
            data = self._data
            while len(data) < self._at + count:
                data += self._feed.some(CHUNK)
            self._base = <const unsigned char*> <const char*> data
            self._size = len(data)
        return 0

    cdef int _forget(self) except -1:
        """Keep only the bytes that are not yet read."""
        self._data = bytearray(self._data[self._at :])
        self._base = <const unsigned char*> <const char*> <bytearray> self._data
        self._size = len(self._data)
        self._limit -= self._at
        self._gone += self._at
        self._at = 0
        return 0

    cdef inline int _take(self, Py_ssize_t memory) except -1:
        """Count memory that values take."""
        self._memory += memory
        if self._memory > self._max_memory:
            raise TooMuchMemory(self._max_memory)
        return 0

    cdef inline int _byte(self) except -1:
        self._need(1)
        self._at += 1
        return self._base[self._at - 1]

    cdef inline int32_t _i32(self) except? -1:
        self._need(4)
        cdef const unsigned char* p = self._base + self._at
        self._at += 4
        return <int32_t> ((<uint32_t> p[0] << 24) | (p[1] << 16) | (p[2] << 8) | p[3])

    cdef inline int64_t _i64(self) except? -1:
        self._need(8)
        cdef uint64_t high = <uint32_t> self._i32()
        return <int64_t> ((high << 32) | <uint32_t> self._i32())

    cdef inline const char* _bytes(self, Py_ssize_t size) except NULL:
        if size < 0:
            raise size_error(size)
        self._need(size)
        self._at += size
        return <const char*> (self._base + self._at - size)

    cdef int _pass(self, Py_ssize_t size) except -1:
        """Skip `size` bytes in small parts, to hold few of them at once."""
        cdef Py_ssize_t part
        if size < 0:
            raise size_error(size)
        if self._at + size > self._limit:
            raise TooLarge(self._limit + self._gone)
        while size > 0:
            part = min(size, <Py_ssize_t> CHUNK)
            self._need(part)
            self._at += part
            size -= part
        return 0

    cdef bytes _raw(self, Py_ssize_t size):
        return PyBytes_FromStringAndSize(self._bytes(size), size)

    cdef object _text(self):
        cdef Py_ssize_t size = self._i32()
        cdef const char* begin = self._bytes(size)
        if self._texts is None or size > LONGEST_COMMON:
            return self._new_text(begin, size)
        cdef unsigned int place = _mixed(begin, size)
        text = self._texts[place]
        if text is None or not _is(text, begin, size):
            text = self._texts[place] = self._new_text(begin, size)
        return text

    cdef object _new_text(self, const char* begin, Py_ssize_t size):
        self._take(TEXT_MEMORY + size)
        try:
            return PyUnicode_DecodeUTF8(begin, size, NULL)
        except UnicodeDecodeError:
            if self._invalid is None:
                self._invalid = self._field
            return PyUnicode_DecodeUTF8(begin, size, "replace")

    cdef int32_t _count(self) except -1:
        """Read the number of elements of a container."""
        cdef int32_t count = self._i32()
        if count < 0 or count > self._max_container_size or count > self._limit - self._at:
            raise container_error(count, self._max_container_size)
        return count

    cdef object _struct(self, Plan plan, int depth):
        cdef int ttype
        cdef int fid
        cdef Field field
        cdef Field outer = self._field
        cdef dict values
        if depth <= 0:
            raise depth_error()
        depth -= 1
        self._take(plan.memory)
        values = PyDict_Copy(plan.defaults)
        while True:
            ttype = self._byte()
            if ttype == STOP:
                break
            self._need(2)
            fid = <int16_t> ((self._base[self._at] << 8) | self._base[self._at + 1]) - plan.first
            self._at += 2
            field = <Field> plan.by_number[fid] if 0 <= fid < len(plan.by_number) else None
            if field is None or field.type.sent != ttype:
                self._skip(ttype, depth)
                continue
            self._field = field
            value = self._value(field.type, depth) if field.slot < 0 else self._shared(field, depth)
            PyDict_SetItem(values, field.name, value)
        self._field = outer
        struct = plan.cls.__new__(plan.cls)
        struct.__dict__ = values
        return struct

    cdef object _shared(self, Field field, int depth):
        """Return the value of a field: the last one of that field, if its bytes are the same."""
        cdef Seen seen
        cdef Py_ssize_t begin = self._at
        if self._seen is None:
            self._seen = [None] * count_slots()
        seen = self._seen[field.slot]
        if seen is None:
            seen = self._seen[field.slot] = Seen()
        elif (
            seen.depth == depth and begin + seen.size <= self._size and begin + seen.size <= self._limit
            and memcmp(self._base + begin, self._base + seen.at, seen.size) == 0
        ):
            self._at += seen.size
            return seen.value
        seen.size = 0
        seen.value = self._value(field.type, depth)
        seen.at, seen.size, seen.depth = begin, self._at - begin, depth
        return seen.value

    cdef object _value(self, Type type_, int depth):
        cdef int ttype = type_.ttype
        cdef int32_t count
        cdef int32_t n
        cdef int sent
        cdef int64_t number
        cdef double real
        cdef list found
        if ttype == STRING:
            return self._text()
        if ttype == I32:
            return self._i32()
        if ttype == I64:
            return self._i64()
        if ttype == BOOL:
            return self._byte() != 0
        if ttype == STRUCT:
            return self._struct(type_.plan, depth)
        if ttype == BINARY:
            sent = self._i32()
            self._take(TEXT_MEMORY + (sent if sent > 0 else 0))
            return self._raw(sent)
        if ttype == DOUBLE:
            number = self._i64()
            memcpy(&real, &number, 8)
            return real
        if ttype == BYTE:
            return <signed char> self._byte()
        if ttype == I16:
            number = self._byte() << 8
            return <int16_t> (number | self._byte())
        if depth <= 0:
            raise depth_error()
        depth -= 1
        if ttype == MAP:
            return self._map(type_, depth)
        sent = self._byte()
        count = self._count()
        found = []
        if count >= MANY and self._texts is None:
            self._texts = [None] * TEXTS
        if sent != type_.element.sent:
            for n in range(count):
                self._skip(sent, depth)
            return found
        self._take(LIST_MEMORY + ELEMENT_MEMORY * count)
        for n in range(count):
            PyList_Append(found, self._value(type_.element, depth))
        return found

    cdef dict _map(self, Type type_, int depth):
        cdef dict found = {}
        cdef int sent_key = self._byte()
        cdef int sent_value = self._byte()
        cdef int32_t count = self._count()
        cdef int32_t n
        if sent_key != type_.key.sent or sent_value != type_.element.sent:
            for n in range(count):
                self._skip(sent_key, depth)
                self._skip(sent_value, depth)
            return found
        self._take(LIST_MEMORY + ENTRY_MEMORY * count)
        for n in range(count):
            key = self._value(type_.key, depth)
            if isinstance(key, list):
                key = tuple(key)
            found[key] = self._value(type_.element, depth)
        return found

    cdef int _skip(self, int ttype, int depth) except -1:
        """Skip a value of an undeclared type."""
        if ttype == STRING:
            self._pass(self._i32())
        else:
            self._value(undeclared(ttype), depth)
        return 0
