"""Choose the codec: the compiled one where it was built and wanted, else the pure one. Both decode the same messages alike.

`METASTORE_CODEC=pure` in the environment wants the pure one.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from metastore.wire.codec import pure


def _compiled() -> Any:
    """Return the module of the compiled decoder; None where it is missing or not wanted."""
    if os.environ.get("METASTORE_CODEC") == "pure":
        return None
    try:
        return importlib.import_module("metastore.wire.codec.fast_decoder")
    except ImportError:
        return None


_decoder = _compiled()
IMPLEMENTATION = "pure" if _decoder is None else "compiled"
DECODERS: dict[str, type[pure.Decoder]] = {
    "binary": pure.BinaryDecoder if _decoder is None else _decoder.BinaryDecoder,
    "compact": pure.CompactDecoder,
}
"""By protocol."""
