"""The comparisons of filters as functions, by their signs. This module never chooses the operands."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
