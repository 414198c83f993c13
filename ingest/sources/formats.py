"""Formats of packed files, which are recognised by their first bytes: rotated logs are called ``.log.1`` or ``.gz``
whatever is in them."""

from typing import Final

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
XZ: Final = b"\xfd7zXZ\x00"
BZIP2: Final = b"BZh"
TAR_MAGIC: Final = slice(257, 262)
HEAD_BYTES: Final = 512
"""Number of first bytes that tell whether a file is packed."""


def is_packed(head: bytes) -> bool:
    """Tell from the first ``HEAD_BYTES`` of a file whether it is packed."""
    return head.startswith((GZIP, ZSTD, XZ, BZIP2)) or head[TAR_MAGIC] == b"ustar"
