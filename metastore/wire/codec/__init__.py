"""Choose the codec: the compiled one where it was built and is allowed, else the pure one. Both read and write the same.

`METASTORE_CODEC=pure` in the environment chooses the pure one. Structs are encoded. Within a result, a tuple of a struct's fields in the
order of their declaration, or its bytes in the binary protocol, may replace the struct: a long list then needs no struct for each row.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

from metastore.wire.codec import pure, pure_binary, pure_encoder

Encode = Callable[[str, int, int, Any, bool], bytes]
"""A function from the method, the type of the message, its sequence id, its struct, and whether it has a frame, to its bytes."""


def _choose() -> tuple[str, type[pure.Decoder], Encode]:
    """Return the name of the codec of the binary protocol, its decoder and its encoder. A compiled one that can not be loaded warns."""
    if os.environ.get("METASTORE_CODEC") != "pure":
        try:
            decoder, encoder = (importlib.import_module(f"metastore.wire.codec.{name}") for name in ("fast_decoder", "fast_encoder"))
        except ImportError as error:
            if error.name not in ("metastore.wire.codec.fast_decoder", "metastore.wire.codec.fast_encoder"):  # else it was not built
                warnings.warn(f"the compiled codec can not be loaded, the pure one is used: {error}", stacklevel=2)
        else:
            return "compiled", decoder.BinaryDecoder, encoder.encode_binary
    return "pure", pure_binary.FastBinaryDecoder, pure_encoder.encode_binary


PURE = "the pure codec is used, which takes longer for each message: install a C compiler and Python's headers, then metastore again"
"""The warning where the compiled codec is not there."""

IMPLEMENTATION, _decoder, _encode = _choose()
DECODERS: dict[str, type[pure.Decoder]] = {"binary": _decoder, "compact": pure.CompactDecoder}
"""The decoders by protocol."""
ENCODERS: dict[str, Encode] = {"binary": _encode, "compact": pure_encoder.encode_compact}
