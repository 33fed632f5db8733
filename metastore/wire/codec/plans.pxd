"""What the compiled decoder and encoder know of the declarations of structs."""

cdef enum:
    STOP = 0
    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15
    BINARY = 18


cdef class Type:
    """A declared type: of a field, of a list's elements, of a map's keys or values."""

    cdef int ttype
    cdef int sent  # the type on the wire: a binary is a string there
    cdef Type key
    cdef Type element  # of a list, a set, or a map's values
    cdef Plan plan  # of a struct


cdef class Field:
    cdef Type type
    cdef str name
    cdef int number
    cdef Plan owner
    cdef bint nested  # it holds a struct or a container
    cdef Py_ssize_t slot  # the place of the last value of the field in a decoder; -1 for a field that is always decoded
    # The last value that an encoder wrote for the field: the object, the place of its bytes, and the message.
    cdef void* last
    cdef Py_ssize_t last_at
    cdef Py_ssize_t last_size
    cdef unsigned long long last_message


cdef class Plan:
    """One class of structs: its fields, and what a struct has where none was sent."""

    cdef object cls
    cdef dict defaults
    cdef Py_ssize_t memory  # of a struct without its values, in bytes
    cdef list fields
    cdef int first  # the least number of a field
    cdef list by_number  # from the first on, None where there is none


cdef Plan plan_of(cls, bint shares=*)
cdef Py_ssize_t count_slots()
cdef Type undeclared(int ttype)
