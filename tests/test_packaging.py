"""The wheel holds all that a server needs: it is built, installed into a fresh environment and serves from there."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from metastore.client import connect
from tests.support.servers import ROOT, serving


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_carries_the_interface_and_the_migrations(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern in (("idl", "*.thrift"), ("migrations", "**/*.py")):
        sources = [path.relative_to(ROOT / folder) for path in (ROOT / folder).glob(pattern)]
        assert sources
        assert {f"metastore/_{folder}/{path.as_posix()}" for path in sources} <= names
    assert "metastore/idl.pyi" in names
    assert not [name for name in names if name.startswith("tests/")]


@pytest.mark.parametrize("dependencies", ["of the tests", pytest.param("installed with it", marks=pytest.mark.slow)])
def test_an_installed_wheel_serves(wheel: Path, tmp_path: Path, dependencies: str) -> None:
    home = tmp_path / "venv"
    venv.create(home)
    python = str(home / "bin" / "python")
    alone = ["--no-deps"] if dependencies == "of the tests" else []
    if alone:
        ours, its = (sysconfig.get_path("purelib", vars=base) for base in ({}, {"base": str(home)}))
        Path(its, "dependencies.pth").write_text(ours)
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", *alone, str(wheel)], check=True, capture_output=True)
    command = [str(home / "bin" / "metastore")]
    with (
        serving("--workers", "1", home=tmp_path / "home", command=command, cwd=tmp_path, variables={"PYTHONPATH": ""}) as server,
        connect(server.uri) as client,
    ):
        assert client.getStatus() == 2
        assert (tmp_path / "home" / "data" / "metastore" / "metastore.db").exists()
    where = subprocess.run(
        [python, "-c", "import metastore; print(metastore.__file__)"], check=True, capture_output=True, cwd=tmp_path, text=True
    )
    assert Path(where.stdout).is_relative_to(home)
