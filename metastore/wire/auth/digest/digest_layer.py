"""Protect frames after a login by DIGEST-MD5: auth-int and auth-conf, for both sides. It never logs anybody in.

Source: RFC 2831, 2.3 and 2.4. Of its ciphers only 3DES is implemented, which every Java client has. It needs the library cryptography.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from metastore.wire.auth.sasl import ClientRefused

_MAC, _TAIL, _BLOCK = 10, 6, 8
"""Bytes of a frame's signature; of the version and number after it; of a block of the cipher."""
_VERSION = b"\0\1"
OVERHEAD = _MAC + _TAIL + _BLOCK
"""The most bytes by which a frame is longer than its data."""
Update = Callable[[bytes], bytes]


def _md5(*parts: bytes) -> bytes:
    return hashlib.md5(b"".join(parts), usedforsecurity=False).digest()


def _key(a1: bytes, *, to_server: bool, sealing: bool) -> bytes:
    if sealing:
        way = b"client-to-server" if to_server else b"server-to-client"
        return _md5(a1, b"Digest H(A1) to " + way + b" sealing key magic constant")
    way = b"client-to-server" if to_server else b"server-to-client"
    return _md5(a1, b"Digest session key to " + way + b" signing key magic constant")


class _Signature:
    """HMAC-MD5 under one key, whose first blocks are hashed once: less than half of the time that `hmac` takes for each frame."""

    def __init__(self, key: bytes) -> None:
        block = key.ljust(64, b"\0")
        self._inner, self._outer = (hashlib.md5(bytes(byte ^ pad for byte in block), usedforsecurity=False) for pad in (0x36, 0x5C))

    def of(self, number: bytes, data: bytes) -> bytes:
        """Return the signature of a frame."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(number)
        inner.update(data)
        outer.update(inner.digest())
        return outer.digest()[:_MAC]


def _with_parity(seven: bytes) -> bytes:
    """Spread seven bytes over the upper seven bits of eight bytes, the form of DES's keys; the lowest bits are not used."""
    bits = int.from_bytes(seven, "big")
    return bytes((bits >> shift & 0x7F) << 1 for shift in range(49, -1, -7))


def _ciphers(sealing: bytes) -> tuple[Update, Update]:
    """Return the functions to encrypt and to decrypt in one direction. The cipher's blocks are chained over all frames."""
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

    first, second = _with_parity(sealing[:7]), _with_parity(sealing[7:14])
    cipher = Cipher(TripleDES(first + second + first), modes.CBC(sealing[8:16]))
    return cipher.encryptor().update, cipher.decryptor().update


class DigestLayer:
    """Signs frames and, if they are to be encrypted, encrypts them with their signature."""

    def __init__(self, a1: bytes, *, is_server: bool, encrypted: bool, max_size: int) -> None:
        """`a1` is the session's key, H(A1); `max_size` the bytes of data that the other side takes in one frame."""
        self.max_size = max_size
        self._sign = _Signature(_key(a1, to_server=not is_server, sealing=False))
        self._check = _Signature(_key(a1, to_server=is_server, sealing=False))
        self._encrypt = _ciphers(_key(a1, to_server=not is_server, sealing=True))[0] if encrypted else None
        self._decrypt = _ciphers(_key(a1, to_server=is_server, sealing=True))[1] if encrypted else None
        self._sent = self._received = 0

    def wrap(self, data: bytes) -> bytes:
        """Return the payload of one frame, protected for sending."""
        number = self._sent.to_bytes(4, "big")
        self._sent = (self._sent + 1) & 0xFFFFFFFF
        signed = self._sign.of(number, data)
        if self._encrypt is None:
            return data + signed + _VERSION + number
        pad = _BLOCK - (len(data) + _MAC) % _BLOCK
        return self._encrypt(data + bytes([pad]) * pad + signed) + _VERSION + number

    def unwrap(self, frame: bytes) -> bytes:
        """Return the data of one protected frame. Raises ClientRefused for a frame that was changed, or is out of turn."""
        body, number = frame[:-_TAIL], self._received.to_bytes(4, "big")
        self._received = (self._received + 1) & 0xFFFFFFFF
        if frame[-_TAIL:] != _VERSION + number or len(body) < _MAC:
            raise ClientRefused("A protected frame is too short, came twice or out of its turn")
        if self._decrypt is None:
            data, signed = body[:-_MAC], body[-_MAC:]
        else:
            if len(body) % _BLOCK:
                raise ClientRefused("An encrypted frame does not fill its last block")
            plain = self._decrypt(body)
            padded, signed = plain[:-_MAC], plain[-_MAC:]
            pad = padded[-1] if padded else 0
            # The signature is compared after a wrong padding, too: a client must not learn which of the two was wrong.
            data = padded[:-pad] if 1 <= pad <= _BLOCK else b""
        if not hmac.compare_digest(self._check.of(number, data), signed):
            raise ClientRefused("A protected frame was changed on its way")
        return data
