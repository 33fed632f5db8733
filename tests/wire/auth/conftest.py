"""One Kerberos realm for all tests of a process, and the environment of whoever uses it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kdc import Kdc, realm


@pytest.fixture(scope="session")
def running_kdc() -> Iterator[Kdc]:
    pytest.importorskip("gssapi", reason="built with libkrb5-dev: pip install metastore[kerberos]")
    with realm() as started:
        yield started


@pytest.fixture
def kdc(running_kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> Kdc:
    """The realm, with this process in it."""
    for name, value in running_kdc.variables.items():
        monkeypatch.setenv(name, value)
    return running_kdc
