"""Read the parameters of a page or action from the query, the path, a form or JSON, as its function declares them. It calls none."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from metastore.errors import InvalidInput

LARGEST = 2**63 - 1


class Parameter(NamedTuple):
    """A parameter of a page or action."""

    name: str
    type: type
    """`str` or `int`."""
    choices: tuple[str, ...]
    default: Any
    """`inspect.Parameter.empty` for one that has to be given."""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@cache
def declared(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a function after the visit."""
    hints = get_type_hints(function)
    out = []
    for name, each in list(inspect.signature(function).parameters.items())[1:]:
        choices = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        out.append(Parameter(name, str if choices else hints[name], choices, each.default))
    return tuple(out)


def read(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for a function after the visit; unknown parameters are ignored. InvalidInput."""
    return {each.name: _value(each, given[each.name]) for each in _present(function, given)}


def _present(function: Callable[..., Any], given: Mapping[str, Any]) -> list[Parameter]:
    missing = [each.name for each in declared(function) if each.required and given.get(each.name) in (None, "")]
    if missing:
        raise InvalidInput(f"The parameter {missing[0]} is missing: give it")
    return [each for each in declared(function) if each.name in given and (given[each.name] != "" or each.type is str)]


def _value(parameter: Parameter, given: Any) -> Any:
    if parameter.type is int:
        try:
            number = int(given)
        except (TypeError, ValueError):
            raise InvalidInput(f"The parameter {parameter.name} is not a number: {str(given)[:100]!r}") from None
        if not -LARGEST <= number <= LARGEST:
            raise InvalidInput(f"The parameter {parameter.name} is too large a number")
        return number
    if not isinstance(given, str):
        raise InvalidInput(f"The parameter {parameter.name} is not a text")
    if parameter.choices and given not in parameter.choices:
        raise InvalidInput(f"The parameter {parameter.name} is none of {', '.join(each for each in parameter.choices if each)}")
    return given


def is_optional(hint: Any) -> bool:
    """Return whether a type is one that may be None."""
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)
