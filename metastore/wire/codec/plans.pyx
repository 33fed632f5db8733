# cython: language_level=3
"""Prepare the declarations of structs for the compiled decoder and encoder: once for each class, with its first message."""

from threading import Lock

from metastore.wire.codec import limits

cdef dict _plans = {}
cdef Py_ssize_t _slots = 0
_lock = Lock()


cdef class Type:
    pass


cdef class Field:
    pass


cdef class Plan:
    pass


cdef Plan plan_of(cls, bint shares=False):
    """Return the plan of a class; one that shares has slots for its structs and containers.

    A thread sees only complete plans, with the plans of all structs inside.
    """
    cdef Plan plan = _plans.get((cls, shares))
    cdef dict made = {}
    if plan is None:
        with _lock:
            plan = _make(cls, shares, made)
            _plans.update(made)
    return plan


cdef Plan _make(cls, bint shares, dict made):
    """Return the plan of a class. `made` gets it and the new plans of the structs inside, some of them not yet complete."""
    global _slots
    cdef Plan plan = _plans.get((cls, shares)) or made.get((cls, shares))
    cdef Field field
    if plan is not None:
        return plan
    specs = cls.thrift_spec
    plan = Plan()
    plan.cls = cls
    plan.defaults = dict(vars(cls()))
    plan.memory = limits.memory_of(cls)
    plan.fields = []
    plan.first = min(specs, default=0)
    plan.by_number = [None] * (max(specs, default=-1) + 1 - plan.first)
    made[cls, shares] = plan
    for number, spec in specs.items():
        place = cls.__name__, spec[1]
        field = Field()
        field.owner = plan
        field.name = spec[1]
        field.number = number
        field.type = _type(spec[0], spec[2] if len(spec) > 3 else None, place in limits.SHARED_PARTS, made)
        field.nested = field.type.ttype in (STRUCT, LIST, SET, MAP)
        field.slot = -1
        if place in limits.SHARED_FIELDS or (shares and field.nested):
            field.slot = _slots
            _slots += 1
        plan.fields.append(field)
        plan.by_number[number - plan.first] = field
    return plan


cdef Py_ssize_t count_slots():
    return _slots


cdef Type _type(int ttype, spec, bint shares, dict made):
    cdef Type type_ = Type()
    type_.ttype = ttype
    type_.sent = STRING if ttype == BINARY else ttype
    if ttype == STRUCT:
        type_.plan = _make(spec, shares, made)
    elif ttype in (LIST, SET):
        type_.element = _inner(spec, shares, made)
    elif ttype == MAP:
        type_.key, type_.element = _inner(spec[0], False, made), _inner(spec[1], False, made)
    return type_


cdef Type _inner(spec, bint shares, dict made):
    return _type(spec[0], spec[1], shares, made) if isinstance(spec, tuple) else _type(spec, None, shares, made)


class _Undeclared:
    thrift_spec = {}


cdef dict _undeclared = {ttype: _type(ttype, None, False, {}) for ttype in (BOOL, BYTE, DOUBLE, I16, I32, I64)}
_undeclared[STRING] = _type(BINARY, None, False, {})  # its bytes are not checked
_undeclared[STRUCT] = _type(STRUCT, _Undeclared, False, {})
_undeclared[LIST] = _undeclared[SET] = _type(LIST, -1, False, {})
_undeclared[MAP] = _type(MAP, (-1, -1), False, {})


cdef Type undeclared(int ttype):
    """Return the type to read a skipped value: no element has the declared type, so all are skipped. Malformed for an unknown type."""
    found = _undeclared.get(ttype)
    if found is None:
        raise limits.type_error(ttype)
    return found
