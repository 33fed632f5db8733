from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import pytest
import structlog

from metastore import log


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("style", ["json", "console"])
def test_passwords_of_urls_are_not_logged(style: str) -> None:
    stream = io.BytesIO()
    log.configure("info", style, stream)
    url = "postgresql://me:her@ring@h/d"
    for write in (log.get("x").info, log.get("x").warning):
        write(f"asks {url}", url=url)
    try:
        raise ValueError(url)
    except ValueError:
        log.get("x").exception("failed")
    written = stream.getvalue().decode()
    assert written.count("postgresql://me:***@h/d") == 5
    assert "her@" not in written
    assert "ring@" not in written


def test_json_is_one_object_per_line() -> None:
    stream = io.BytesIO()
    log.configure("info", stream=stream)
    log.get("x").info("call", method="get_table", user=None)
    log.get("x").debug("not shown")
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert (event["event"], event["part"], event["level"], event["user"]) == ("call", "x", "info", None)


def test_json_has_time_traceback_and_values_that_are_not_json() -> None:
    stream = io.BytesIO()
    log.configure("info", stream=stream)
    before = datetime.now(timezone.utc)
    try:
        raise KeyError("lost")
    except KeyError as error:
        log.get("x").error("call failed", exc_info=error, path=Path("/x"))
    log.get("x").exception("no error is at hand")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert before <= datetime.fromisoformat(first["timestamp"].replace("Z", "+00:00")) <= datetime.now(timezone.utc)
    assert first["timestamp"].endswith("Z")
    assert "KeyError: 'lost'" in first["exception"]
    assert "/x" in first["path"]
    assert (first["level"], second["level"]) == ("error", "error")


def test_a_line_below_the_level_is_left_out_and_a_test_can_capture_the_others() -> None:
    stream = io.BytesIO()
    log.configure("warning", stream=stream)
    log.get("x").info("call")
    log.get("x").warning("shown")
    log.configure("info", stream=stream)
    bound = log.get("x").bind()
    with structlog.testing.capture_logs() as captured:
        bound.info("call", method="get_table")
    bound.info("afterwards")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["shown", "afterwards"]
    assert [(line["event"], line["method"], line["log_level"]) for line in captured] == [("call", "get_table", "info")]


def test_console_is_text() -> None:
    stream = io.BytesIO()
    log.configure("debug", "console", stream)
    log.get("x").debug("call", method="get_table")
    assert b"method=get_table" in stream.getvalue()


@pytest.mark.parametrize(("level", "style"), [("loud", "json"), ("info", "xml")])
def test_unknown_names_are_refused(level: str, style: str) -> None:
    with pytest.raises(ValueError, match="unknown; use"):
        log.configure(level, style)


def test_a_line_that_a_full_pipe_takes_in_parts_comes_whole() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(writing, "wb") as stream, ThreadPoolExecutor(1) as pool:
        log.configure("info", stream=stream)
        written = pool.submit(lambda: log.get("x").info("long", text="a" * 1_000_000))
        received = b""
        while not received.endswith(b"\n"):
            received += os.read(reading, 50_000)
        written.result(30)
    os.close(reading)
    assert json.loads(received)["text"] == "a" * 1_000_000
