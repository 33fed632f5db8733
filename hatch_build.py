"""Compile the codec while a wheel is built or an editable installation is made. Without a C compiler the wheel is pure Python.

Hatchling calls it; see https://hatch.pypa.io/latest/plugins/build-hook/custom/.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("metastore/wire/codec")


class CodecBuildHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel; an editable installation has them beside their sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; tell on standard error what is in the way."""
        if os.environ.get("METASTORE_CODEC") == "pure":
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
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


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
