"""The wheel holds all that a server needs: it is built, installed into a fresh environment and serves from there."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from metastore.client import connect
from tests.support.servers.servers import ROOT, serving


def build(folder: Path, kind: str, source: Path = ROOT, **variables: str) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **variables})
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built where no C compiler is found, which takes a fifth of the time."""
    return build(tmp_path_factory.mktemp("wheel"), "wheel", METASTORE_CODEC="", CC="/no/compiler")


@pytest.fixture(scope="module")
def compiled_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("compiled"), "wheel", METASTORE_CODEC="")


def modules(wheel: Path) -> list[str]:
    return [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".so", ".pyd"))]


@pytest.mark.slow
def test_the_wheel_carries_the_compiled_codec(compiled_wheel: Path) -> None:
    sources = sorted(path.stem for path in ROOT.glob("metastore/wire/codec/*.pyx"))
    assert sources
    assert sorted(Path(name).name.split(".")[0] for name in modules(compiled_wheel)) == sources
    assert all(name.startswith("metastore/wire/codec/") for name in modules(compiled_wheel))
    assert not compiled_wheel.name.endswith("-none-any.whl")


def test_without_a_compiler_the_wheel_is_pure(wheel: Path) -> None:
    assert wheel.name.endswith("-none-any.whl")
    assert not modules(wheel)


@pytest.mark.slow
def test_the_wheel_of_a_source_distribution_is_compiled_too(compiled_wheel: Path, tmp_path: Path) -> None:
    source, unpacked, built = tmp_path / "sdist", tmp_path / "source", tmp_path / "wheel"
    shutil.unpack_archive(build(source, "sdist"), unpacked)
    (folder,) = unpacked.iterdir()
    assert not list(folder.rglob("*.so"))
    assert modules(build(built, "wheel", folder, METASTORE_CODEC="")) == modules(compiled_wheel)


def test_modules_that_are_newer_than_their_sources_are_not_compiled_again(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    folder = tmp_path / hook.FOLDER
    folder.mkdir(parents=True)
    source, declared, hooked = folder / "a.pyx", folder / "b.pxd", tmp_path / "hatch_build.py"
    module = folder / f"a{sysconfig.get_config_var('EXT_SUFFIX')}"
    for path in (source, declared, hooked):
        path.touch()
    assert not hook._is_compiled(tmp_path)
    module.touch()
    for path in (source, declared, hooked):
        os.utime(module, (2, 2))
        for each in (source, declared, hooked):
            os.utime(each, (1, 1))
        assert hook._is_compiled(tmp_path)
        os.utime(path, (3, 3))
        assert not hook._is_compiled(tmp_path), path


def test_the_wheel_has_the_files_of_the_console(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = [path for folder in ("templates", "static") for path in (ROOT / "metastore" / "console" / folder).iterdir()]
    assert len(sources) > 20
    assert [str(path) for path in sources if str(path.relative_to(ROOT)) not in names] == []


def test_the_wheel_carries_the_interface_and_the_migrations(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern in (("idl", "*.thrift"), ("migrations", "**/*.py")):
        sources = [path.relative_to(ROOT / folder) for path in (ROOT / folder).glob(pattern)]
        assert sources
        assert {f"metastore/_{folder}/{path.as_posix()}" for path in sources} <= names
    assert {"metastore/idl.pyi", "pyspark_hive_acid.py"} <= names
    assert not [name for name in names if name.startswith("tests/")]


@pytest.mark.parametrize(
    ("kind", "dependencies"), [("wheel", "of the tests"), pytest.param("compiled_wheel", "installed with it", marks=pytest.mark.slow)]
)
def test_an_installed_wheel_serves(request: pytest.FixtureRequest, tmp_path: Path, kind: str, dependencies: str) -> None:
    wheel = request.getfixturevalue(kind)
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
