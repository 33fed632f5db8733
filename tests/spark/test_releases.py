"""The tests of this folder on the releases of Spark that are supported: `releases` makes an environment for each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("release", ["3.5", "4.0", "newest"])
def test_the_pipeline_works_on_each_release_of_spark(release: str) -> None:
    subprocess.run([Path(__file__).with_name("releases"), release, "--", "-q"], check=True)
