"""Byte offsets of the three sections of a record of device verdicts: header, verdicts, inventory.

The inventory is four fifths of the record, and the same from one attempt to the next. Only a record that is laid out as
our encoder writes it has sections; any other is treated as one piece.
"""

from typing import Final

# Fields are encoded in the order of ``DevicesJudged``'s base classes: attempt, verdicts (from ``part``), inventory
# (from ``kinds``).
_TAIL: Final = b',"part":'
_INVENTORY: Final = b',"kinds":'
# Searched no further: in a record of another layout the same bytes may occur in a text much later.
_MAX_HEAD_BYTES: Final = 2_048


def tail(value: bytes) -> int:
    """Byte offset of the comma that ends the header (the attempt's identity), or -1 if the record isn't laid out as our
    encoder writes it."""
    return value.find(_TAIL, 0, _MAX_HEAD_BYTES)


def inventory(value: bytes, start: int) -> int:
    """Byte offset of the comma before the inventory, searched from ``start`` (the offset of ``tail``); -1 for none."""
    return value.find(_INVENTORY, start)


def divided(value: bytes, at: int) -> tuple[bytes, memoryview]:
    """The record without its inventory, and the inventory (from offset ``at``) without its opening brace.

    Only for a record whose layout was recognized; any other may be cut in the middle of a text.
    """
    # A view: the inventory is four fifths of 64 KiB and would be copied for every record.
    whole = memoryview(value)
    return b"".join((whole[:at], b"}")), whole[at + 1 :]


def as_object(devices: memoryview) -> bytes:
    """The inventory as a complete JSON object."""
    return b"".join((b"{", devices))
