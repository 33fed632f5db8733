from __future__ import annotations

import inspect

import pytest
from thriftpy2.thrift import TApplicationException

from metastore import errors, idl
from metastore.methods.interface.errors import EXCEPTIONS, declared, failure


def test_every_error_class_or_a_base_of_it_has_an_exception() -> None:
    for _, cls in inspect.getmembers(errors, inspect.isclass):
        if issubclass(cls, errors.MetastoreError) and cls is not errors.MetastoreError:
            assert any(base in EXCEPTIONS for base in cls.__mro__), cls


def test_every_exception_is_declared_by_some_method() -> None:
    everywhere = {exception for method in idl.service.thrift_services for exception in declared(method)}
    assert set(EXCEPTIONS.values()) <= everywhere


@pytest.mark.parametrize(
    ("method", "error", "field", "cls"),
    [
        ("get_tables_by_type", errors.UnknownDatabase("x"), "o1", idl.MetaException),
        ("get_table_names_by_filter", errors.UnknownDatabase("x"), "o3", idl.UnknownDBException),
        ("get_table", errors.UnknownDatabase("x"), "o2", idl.NoSuchObjectException),
        ("get_table", errors.AlreadyExists("x"), "o1", idl.MetaException),
        ("get_table", errors.RequestTooLarge("x"), "o1", idl.MetaException),
        ("create_table", errors.InvalidObject("x"), "o2", idl.InvalidObjectException),
        ("create_table", idl.InvalidObjectException(message="x"), "o2", idl.InvalidObjectException),
        ("get_table", idl.InvalidObjectException(message="x"), "o1", idl.MetaException),
    ],
)
def test_the_most_specific_declared_exception_is_set(method: str, error: Exception, field: str, cls: type) -> None:
    result = failure(method, error)
    set_fields = {name: value for name, value in vars(result).items() if value is not None}
    assert list(set_fields) == [field]
    assert type(set_fields[field]) is cls
    assert set_fields[field].message == "x"


def test_an_application_exception_of_a_handler_goes_out_as_it_is() -> None:
    error = TApplicationException(TApplicationException.UNKNOWN_METHOD, "no")
    assert failure("get_table", error) is error


def test_create_ischema_sets_the_field_of_both_releases() -> None:
    result = failure("create_ischema", errors.NoSuchObject("x"))
    assert (result.o2.message, result.o_minus1.message) == ("x", "x")  # type: ignore[attr-defined]
