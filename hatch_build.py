"""Compile the codec while a wheel is built or an editable installation is made. Without a C compiler the wheel is pure Python.

Hatchling calls it; see https://hatch.pypa.io/latest/plugins/build-hook/custom/.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("metastore/wire/codec")


class CodecBuildHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel; an editable installation has them beside their sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; an error is reported on standard error. Modules beside their sources that are newer than all of these stay."""
        if os.environ.get("METASTORE_CODEC") == "pure":
            return
        if version == "editable" and _is_compiled(Path(self.root)):
            build_data.update(pure_python=False, infer_tag=True)
            return
        work = self.root if version == "editable" else tempfile.mkdtemp()
        for old in (Path(work) / FOLDER).glob("*.so"):  # those of an earlier version must not serve where this one does not compile
            old.unlink()
        try:
            built = compile_codec(Path(self.root), Path(work))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # compilers and setuptools fail in many ways
            print(f"The codec is not compiled, the pure one serves: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
            return
        if version != "editable":
            build_data["force_include"].update({str(path): str(FOLDER / path.name) for path in built})
        build_data.update(pure_python=False, infer_tag=True)


def _is_compiled(root: Path) -> bool:
    """Return whether the modules of this release of Python are there and newer than their sources."""
    sources = [root / "hatch_build.py", *(root / FOLDER).glob("*.p[yx][xd]")]
    modules = [path.with_suffix(str(sysconfig.get_config_var("EXT_SUFFIX"))) for path in sources if path.suffix == ".pyx"]
    return bool(modules) and all(path.exists() for path in modules) and min(map(_changed, modules)) > max(map(_changed, sources))


def _changed(path: Path) -> float:
    return path.stat().st_mtime


def compile_codec(root: Path, work: Path) -> list[Path]:
    """Compile the `.pyx` files below `root` into modules below `work`, in folders of the same names, and return their paths."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    with tempfile.TemporaryDirectory() as folder:
        extensions = [
            Extension(".".join(path.relative_to(root).with_suffix("").parts), [str(path)]) for path in sorted((root / FOLDER).glob("*.pyx"))
        ]
        modules = cythonize(extensions, build_dir=folder, quiet=True)
        command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib, command.build_temp, command.parallel = str(work), folder, True
        command.ensure_finalized()
        command.run()
        return [Path(path) for path in command.get_outputs()]
