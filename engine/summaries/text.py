"""The one place where counted verdicts become words.

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
    """``X/Y Code``."""

    refused: int
    devices: int
    code: str


def reason_text(counts: Mapping[str, int], devices: int) -> str:
    """``{"NumaNotFit": 2, "CardCordoned": 1}`` of 8 devices is ``1/8 CardCordoned, 2/8 NumaNotFit``."""
    return ", ".join(sorted(f"{count}/{devices} {code}" for code, count in counts.items()))


def read_reasons(text: str) -> list[CountedReason | None]:
    """What ``reason_text`` wrote, part by part, where only the text has come down to us; None for other words.

    Read as HAMi reads it (``common.ParseReason``): numbers may have signs, and what follows the code is passed over.
    """
    found = [_COUNTED.match(part) for part in text.split(", ")]
    return [CountedReason(int(match[1]), int(match[2]), match[3]) if match else None for match in found]


def refusal_text(refusal: Refusal) -> str:
    """Why a node refused, in one line: bare words with their cause; counts as ``X/Y Reason``, or the codes alone."""
    if refusal.uncounted:
        return ", ".join(sorted(refusal.uncounted))
    if not refusal.bare:
        return reason_text(refusal.counts, refusal.devices)
    return f"{refusal.bare}: {refusal.cause}" if refusal.cause else refusal.bare
