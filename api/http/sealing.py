"""Encryption of what callers hold for the API between two requests: continue tokens and positions of watches.

AES-SIV (RFC 5297) with a random nonce: a caller can neither read nor change the content, nor see whether two texts mean
the same. The key is derived from the private key of the certificate, which all replicas share.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

_NONCE_BYTES: Final = 16
_TAG_BYTES: Final = 16


class Seal:
    """Cipher of this process."""

    def __init__(self) -> None:
        self.read_key: Callable[[], bytes] = bytes
        """Empty by default: where every caller may read everything, a forged token reveals nothing."""

    @property
    def is_secret(self) -> bool:
        """True if callers do not know the key."""
        return bool(self.read_key())

    def encrypt(self, data: bytes) -> bytes:
        # Without a key there is nothing to hide, and examples of the API's description stay the same.
        nonce = os.urandom(_NONCE_BYTES) if self.is_secret else bytes(_NONCE_BYTES)
        return nonce + _create_cipher(self.read_key()).encrypt(data, [nonce])

    def decrypt(self, sealed: bytes) -> bytes | None:
        """Decrypt what ``encrypt`` returned; None for anything else, or with another key."""
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        if len(ciphertext) <= _TAG_BYTES:
            return None
        try:
            return _create_cipher(self.read_key()).decrypt(ciphertext, [nonce])
        except InvalidTag:
            return None


SEAL: Final = Seal()
"""Cipher of continue tokens, which any replica continues."""
POSITION_SEAL: Final = Seal()
"""Cipher of positions of watches. Where callers have rights it has a key, if need be one of this process only."""


@lru_cache(maxsize=2)
def _create_cipher(key: bytes) -> AESSIV:
    # The derivation gives the 64 bytes of AES-256-SIV, also for an empty key.
    return AESSIV(hashlib.blake2b(key, digest_size=64, person=b"schedulerlogSIV").digest())


def encode_base64(data: bytes) -> str:
    """Encode as base64 that needs no escape in a URL, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_base64(text: str) -> bytes | None:
    """Decode what ``encode_base64`` returned; None for anything else."""
    try:
        return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
