"""Make the page of the command line out of the program's own help, when MkDocs builds the site."""

from __future__ import annotations

import subprocess
import sys

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

COMMAND = [sys.executable, "-m", "typer", "metastore.cli", "utils", "docs", "--name", "metastore", "--title", "Command line"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    text = subprocess.run(COMMAND, check=True, capture_output=True, text=True).stdout  # noqa: S603  # our own program
    files.append(File.generated(config, "command-line.md", content=text))
    return files
