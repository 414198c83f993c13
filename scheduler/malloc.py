"""Setting of the C library to keep freed memory for the next decision; the benchmark of deciding uses it too."""

import contextlib
import ctypes
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""From glibc's malloc.h."""

_LARGEST_COLUMN: Final = 32 * 1024 * 1024  # the most that glibc takes for the second of the two on 64 bits
_RETAINED_BYTES: Final = 64 * 1024 * 1024


def keep_freed() -> None:
    """Use the memory of one decision for the next.

    By default glibc returns large columns to the kernel at once and asks for them again: a fifth of the system time
    of a filter call on 5,000 nodes. Other C libraries have no such setting; there nothing happens.
    """
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _LARGEST_COLUMN)
        libc.mallopt(_TRIM_THRESHOLD, _RETAINED_BYTES)
