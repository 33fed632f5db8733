"""Run a target with atheris, which chooses inputs by the code that they reach: `python -m tests.fuzz http -max_total_time=600`.

Needs `pip install atheris`; further arguments are libFuzzer's. It ends with a traceback and the input at the first error, and when an input
takes longer than 10 seconds or more than a gigabyte. It prints the name of the file in which the input is kept.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

import atheris
import structlog

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
with atheris.instrument_imports(include=["metastore", "h11", "joserfc"]):
    from tests.fuzz.targets import TARGETS, seeds

name = sys.argv[1] if len(sys.argv) > 1 else ""
if name not in TARGETS:
    sys.exit(f"name one of {', '.join(TARGETS)}")
corpus = Path(tempfile.mkdtemp(prefix=f"metastore-fuzz-{name}-"))
for number, seed in enumerate(seeds(name)):
    (corpus / f"seed{number}").write_bytes(seed)
atheris.Setup([sys.argv[0], *sys.argv[2:], "-timeout=10", "-rss_limit_mb=1024", f"-artifact_prefix={corpus}/", str(corpus)], TARGETS[name])
atheris.Fuzz()
