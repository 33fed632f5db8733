# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Encode a message in the binary protocol; the compiled twin of `pure_encoder.encode_binary`.

Parts that a list repeats are encoded once: if an object is the last one of the same field, its bytes are copied. The reply is
written into one buffer, which grows and is returned.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from metastore.wire.codec.plans cimport (
    BINARY, BOOL, BYTE, DOUBLE, I16, I32, I64, LIST, MAP, SET, STOP, STRING, STRUCT, Field, Plan, Type, plan_of,
)

from thriftpy2.thrift import TDecodeException

from metastore.wire.codec import limits

cdef extern from "Python.h":
    PyObject* PyBytes_FromStringAndSize(const char*, Py_ssize_t) except NULL
    char* PyBytes_AS_STRING(PyObject*)
    int _PyBytes_Resize(PyObject**, Py_ssize_t) except -1

cdef int MAX_DEPTH = limits.MAX_DEPTH
cdef enum:
    FIRST_CAPACITY = 400
    MEGABYTE = 1 << 20
cdef unsigned long long _messages = 0


def encode_binary(str name, int kind, int32_t seqid, body, bint framed):
    """Return a message as bytes. Raises TDecodeException for a value of the wrong type, as thriftpy2 does."""
    cdef Encoder encoder = Encoder()
    if framed:
        encoder._i32(0)
    encoder._i32(<int32_t> (<uint32_t> 0x80010000 | <uint32_t> kind))
    encoder._text(name)
    encoder._i32(seqid)
    try:
        encoder._struct(None, body, MAX_DEPTH)
    except (TypeError, AttributeError, OverflowError, UnicodeError) as error:
        raise encoder._error() from error
    if framed:
        encoder._set_i32(0, encoder._at - 4)
    return encoder._finish()


cdef class Encoder:
    cdef PyObject* _out
    cdef char* _base
    cdef Py_ssize_t _at
    cdef Py_ssize_t _capacity
    cdef unsigned long long _message
    cdef Field _field
    cdef object _written
    cdef list _kept

    def __cinit__(self):
        global _messages
        _messages += 1
        self._message = _messages
        self._capacity = FIRST_CAPACITY
        self._out = PyBytes_FromStringAndSize(NULL, FIRST_CAPACITY)
        self._base = PyBytes_AS_STRING(self._out)

    def __dealloc__(self):
        Py_XDECREF(self._out)

    cdef bytes _finish(self):
        _PyBytes_Resize(&self._out, self._at)
        return <bytes> self._out

    cdef _error(self):
        """Return the error that names the field which was being written."""
        cdef Field field = self._field
        if field is None:
            return TypeError(f"{self._written!r} is not a struct")
        cls = field.owner.cls
        spec = cls.thrift_spec[field.number]
        return TDecodeException(cls.__name__, field.number, field.name, self._written, spec[0], spec[2] if len(spec) > 3 else None)

    cdef _keep(self, value):
        """Let a value live as long as the encoder: objects that it compares by identity must not be freed meanwhile."""
        if self._kept is None:
            self._kept = []
        self._kept.append(value)
        return value

    cdef inline char* _room(self, Py_ssize_t count) except NULL:
        """Return the place of the next `count` bytes, with room for them."""
        if self._at + count > self._capacity:
            self._grow(count)
        self._at += count
        return self._base + self._at - count

    cdef int _grow(self, Py_ssize_t count) except -1:
        self._capacity += count + (self._capacity if self._capacity < MEGABYTE else self._capacity >> 2)
        _PyBytes_Resize(&self._out, self._capacity)
        self._base = PyBytes_AS_STRING(self._out)
        return 0

    cdef inline int _byte(self, int value) except -1:
        self._room(1)[0] = <char> value
        return 0

    cdef inline void _set_i32(self, Py_ssize_t at, int32_t value):
        cdef char* p = self._base + at
        p[0], p[1], p[2], p[3] = <char> (value >> 24), <char> (value >> 16), <char> (value >> 8), <char> value

    cdef inline int _i32(self, int32_t value) except -1:
        self._room(4)
        self._set_i32(self._at - 4, value)
        return 0

    cdef inline int _i64(self, int64_t value) except -1:
        self._room(8)
        self._set_i32(self._at - 8, <int32_t> (value >> 32))
        self._set_i32(self._at - 4, <int32_t> value)
        return 0

    cdef inline int _bytes(self, const char* data, Py_ssize_t size) except -1:
        cdef char* to
        if size > 0x7FFFFFFF:
            raise OverflowError("a text of more than 2 GiB")
        self._i32(<int32_t> size)
        to = self._room(size)
        memcpy(to, data, size)
        return 0

    cdef inline int _text(self, value) except -1:
        cdef Py_ssize_t size
        cdef const char* data
        if isinstance(value, bytes):
            return self._bytes(<const char*> (<bytes> value), len(<bytes> value))
        if not isinstance(value, str):
            raise TypeError("no text")
        data = PyUnicode_AsUTF8AndSize(value, &size)
        return self._bytes(data, size)

    cdef int _binary(self, value) except -1:
        cdef bytes data
        if isinstance(value, (str, bytes)):
            return self._text(value)
        data = memoryview(value).tobytes()
        return self._bytes(<const char*> data, len(data))

    cdef int _struct(self, Plan plan, value, int depth) except -1:
        """Write a struct; its bytes, or a tuple of its fields in their order, may stand for it."""
        cdef dict values
        cdef PyObject* item
        cdef Field field
        cdef Field outer = self._field
        cdef Py_ssize_t place = 0
        if depth <= 0:
            raise RecursionError(f"structs and containers nest deeper than {MAX_DEPTH}")
        if plan is not None and isinstance(value, bytes):
            memcpy(self._room(len(<bytes> value)), <const char*> (<bytes> value), len(<bytes> value))
            return 0
        if plan is not None and isinstance(value, tuple):
            if len(<tuple> value) > len(plan.fields):
                raise TypeError(f"{len(value)} values for {len(plan.fields)} fields")
            for item_value in <tuple> value:
                self._one(<Field> plan.fields[place], item_value, depth - 1)
                place += 1
        else:
            if plan is None or type(value) is not plan.cls:
                plan = plan_of(type(value))
            values = value.__dict__
            for field in plan.fields:
                item = PyDict_GetItem(values, field.name)
                if item is not NULL:
                    self._one(field, <object> item, depth - 1)
        self._field = outer
        self._byte(STOP)
        return 0

    cdef int _one(self, Field field, value, int depth) except -1:
        """Write a field, if it has a value."""
        cdef char* to
        cdef Py_ssize_t begin
        if value is None:
            return 0
        self._field, self._written = field, value
        to = self._room(3)
        to[0], to[1], to[2] = <char> field.type.sent, <char> (field.number >> 8), <char> field.number
        if not field.nested:
            return self._value(field.type, value, depth)
        if field.last is <void*> value and field.last_message == self._message:
            to = self._room(field.last_size)
            memcpy(to, self._base + field.last_at, field.last_size)
            return 0
        begin = self._at
        self._value(field.type, value, depth)
        field.last, field.last_message = <void*> value, self._message
        field.last_at, field.last_size = begin, self._at - begin
        return 0

    cdef int _value(self, Type type_, value, int depth) except -1:
        cdef int ttype = type_.ttype
        cdef double real
        cdef int64_t number
        if ttype == STRING:
            return self._text(value)
        if ttype == I32:
            return self._i32(value)
        if ttype == I64:
            return self._i64(value)
        if ttype == BOOL:
            return self._byte(1 if value else 0)
        if ttype == STRUCT:
            return self._struct(type_.plan, value, depth)
        if ttype == BINARY:
            return self._binary(value)
        if ttype == DOUBLE:
            real = value
            memcpy(&number, &real, 8)
            return self._i64(number)
        if ttype == BYTE:
            return self._byte(<int8_t> value)
        if ttype == I16:
            number = <int16_t> value
            self._byte(<int> (number >> 8))
            return self._byte(<int> number)
        if depth <= 0:
            raise RecursionError(f"structs and containers nest deeper than {MAX_DEPTH}")
        if ttype == MAP:
            self._byte(type_.key.sent)
            self._byte(type_.element.sent)
            if not isinstance(value, dict):
                value = self._keep(dict(value.items()))
            self._i32(len(<dict> value))
            for key, item in (<dict> value).items():
                self._value(type_.key, key, depth - 1)
                self._value(type_.element, item, depth - 1)
            return 0
        if not isinstance(value, (list, tuple)):
            value = self._keep(list(value))
        self._byte(type_.element.sent)
        self._i32(len(value))
        for item in value:
            self._value(type_.element, item, depth - 1)
        return 0
