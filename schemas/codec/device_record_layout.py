"""Where a record of devices judged divides: whose attempt it is, what became of the devices, which devices they are.

The last of the three is the inventory, four fifths of the record, and the same from one attempt to the next. Only what
is written as our encoder writes it divides; anything else is one piece.
"""

from typing import Final

_TAIL: Final = b',"part":'
_INVENTORY: Final = b',"kinds":'
_MOST_HEAD_BYTES: Final = 2_048


def tail(value: bytes) -> int:
    """Where it is said no more whose attempt it is: the comma there; -1 where that can't be told."""
    return value.find(_TAIL, 0, _MOST_HEAD_BYTES)


def inventory(value: bytes, start: int) -> int:
    """Where the inventory begins behind ``start``, the place of the ``tail``: the comma there; -1 for nowhere."""
    return value.find(_INVENTORY, start)


def divided(value: bytes, at: int) -> tuple[bytes, memoryview]:
    """The record without its inventory, which begins ``at``, and the inventory behind the brace it would begin with.

    Of a record that was read in halves; any other may be cut in the middle of a text.
    """
    whole = memoryview(value)
    return b"".join((whole[:at], b"}")), whole[at + 1 :]


def as_object(devices: memoryview) -> bytes:
    """An inventory as JSON that stands by itself."""
    return b"".join((b"{", devices))
