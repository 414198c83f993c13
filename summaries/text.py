"""The one place where counted verdicts become words.

The form is HAMi's (``common.GenReason``): ``X/Y Code`` for each code, the *strings* sorted, joined with a comma. So
``10/16 A`` stands before ``2/16 B``.
"""

from collections.abc import Mapping

from schemas.events import Refusal

NODE_UNREGISTERED = "node unregistered"


def reason_text(counts: Mapping[str, int], devices: int) -> str:
    """``{"NumaNotFit": 2, "CardCordoned": 1}`` of 8 devices is ``1/8 CardCordoned, 2/8 NumaNotFit``."""
    return ", ".join(sorted(f"{count}/{devices} {code}" for code, count in counts.items()))


def refusal_text(refusal: Refusal) -> str:
    """Why a node refused, in one line: bare words with their cause; counts as ``X/Y Reason``, or the codes alone."""
    if refusal.uncounted:
        return ", ".join(sorted(refusal.uncounted))
    if not refusal.bare:
        return reason_text(refusal.counts, refusal.devices)
    return f"{refusal.bare}: {refusal.cause}" if refusal.cause else refusal.bare
