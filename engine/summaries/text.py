"""The only place that turns counted verdicts into words.

The form is HAMi's (``common.GenReason``): ``X/Y Code`` for each code, the *strings* sorted, joined with a comma. So
``10/16 A`` stands before ``2/16 B``.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.hami.reason_codes import ReasonCode
from schemas.events import Refusal

NODE_UNREGISTERED: Final = ReasonCode.NODE_UNREGISTERED.value

_COUNTED: Final = re.compile(r"([+-]?\d{1,18})/([+-]?\d{1,18}) +(\S{1,200})", re.ASCII)


class CountedReason(NamedTuple):
    """Parsed form of ``X/Y Code``."""

    refused: int
    devices: int
    code: str


def write_reasons(counts: Mapping[str, int], devices: int) -> str:
    """Write ``{"NumaNotFit": 2, "CardCordoned": 1}`` of 8 devices as ``1/8 CardCordoned, 2/8 NumaNotFit``."""
    return ", ".join(sorted(f"{count}/{devices} {code}" for code, count in counts.items()))


def read_reasons(text: str) -> list[CountedReason | None]:
    """Parse what ``write_reasons`` wrote, part by part, for sources that hold only the text; None for other words.

    It reads as HAMi does (``common.ParseReason``): numbers may have signs, and text after the code is ignored.
    """
    matches = [_COUNTED.match(part) for part in text.split(", ")]
    return [CountedReason(int(match[1]), int(match[2]), match[3]) if match else None for match in matches]


def write_refusal(refusal: Refusal) -> str:
    """Explain a node's refusal in one line: bare words with their cause; counts as ``X/Y Reason``, or only the
    codes."""
    if refusal.uncounted:
        return ", ".join(sorted(refusal.uncounted))
    if not refusal.bare:
        return write_reasons(refusal.counts, refusal.devices)
    return f"{refusal.bare}: {refusal.cause}" if refusal.cause else refusal.bare
