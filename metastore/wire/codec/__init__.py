"""Choose the codec: the compiled one where it was built and is wanted, else the pure one. Both read and write the same.

`METASTORE_CODEC=pure` in the environment wants the pure one. What is encoded are structs; within a result a tuple of its fields, in the
order of their declaration, or its bytes in the binary protocol may stand for a struct, so that a long list needs no struct for each row.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from metastore.wire.codec import pure, pure_encoder

Encode = Callable[[str, int, int, Any, bool], bytes]
"""From the method, the type of the message, its sequence id, its struct, and whether it has a frame."""


def _compiled(name: str) -> Any:
    """Return a compiled module; None where it is missing or not wanted."""
    if os.environ.get("METASTORE_CODEC") == "pure":
        return None
    try:
        return importlib.import_module(f"metastore.wire.codec.{name}")
    except ImportError:
        return None


_decoder, _encoder = _compiled("fast_decoder"), _compiled("fast_encoder")
IMPLEMENTATION = "compiled" if _decoder and _encoder else "pure"
DECODERS: dict[str, type[pure.Decoder]] = {
    "binary": _decoder.BinaryDecoder if IMPLEMENTATION == "compiled" else pure.BinaryDecoder,
    "compact": pure.CompactDecoder,
}
"""By protocol, as the next."""
ENCODERS: dict[str, Encode] = {
    "binary": _encoder.encode_binary if IMPLEMENTATION == "compiled" else pure_encoder.encode_binary,
    "compact": pure_encoder.encode_compact,
}
