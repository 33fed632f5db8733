from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from metastore import log


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_json_is_one_object_per_line() -> None:
    stream = io.BytesIO()
    log.configure("info", stream=stream)
    log.get("x").info("call", method="get_table", user=None)
    log.get("x").debug("not shown")
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert (event["event"], event["part"], event["level"], event["user"]) == ("call", "x", "info", None)


def test_console_is_text() -> None:
    stream = io.BytesIO()
    log.configure("debug", "console", stream)
    log.get("x").debug("call", method="get_table")
    assert b"method=get_table" in stream.getvalue()


@pytest.mark.parametrize(("level", "style"), [("loud", "json"), ("info", "xml")])
def test_unknown_names_are_refused(level: str, style: str) -> None:
    with pytest.raises(ValueError, match="unknown; use"):
        log.configure(level, style)
