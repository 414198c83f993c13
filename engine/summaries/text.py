"""The only place that turns counted verdicts into words, and cuts texts to the limit of Kubernetes events.

The form is HAMi's (``common.GenReason``): ``X/Y Code`` for each code, the *strings* sorted, joined with a comma. So
``10/16 A`` stands before ``2/16 B``.
"""

import re
from collections.abc import Iterable, Mapping
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


MAX_BYTES: Final = 1_024
"""Limit of Kubernetes for the message of an event: longer ones are cut or refused."""

# Reserves more digits than any count has, so that the note never pushes the text over the limit.
_MORE_BYTES: Final = len("... and 1000000000 more words")
_MORE_ENTRIES_BYTES: Final = len("... and 1000000000 more)")


def cut(text: str, limit: int = MAX_BYTES) -> str:
    """Shorten ``text`` to at most ``limit`` bytes of UTF-8.

    A longer text keeps its first complete words, and ends with the number of words that are left out. If not even the
    first word fits, its beginning stays, with the number of characters that are left out.
    """
    # UTF-8 is never shorter than the text: the first comparison saves encoding texts that are too long anyway.
    if len(text) <= limit and len(text.encode()) <= limit:
        return text
    # A cut in the middle of a character of several bytes leaves bytes that are not UTF-8; they are dropped.
    head = text.encode()[: limit - _MORE_BYTES].decode(errors="ignore")
    if not text[len(head)].isspace():
        head = head[: -len(head.split()[-1])] if head.split() and not head[-1].isspace() else head
    if not head.strip():
        head = text.encode()[: limit - _MORE_BYTES].decode(errors="ignore")
        return f"{head}... and {len(text) - len(head)} more"
    return f"{head.rstrip()}... and {len(text[len(head) :].split())} more words"


def join_within_limit(head: str, entries: Iterable[str], count: int) -> str:
    """Join ``head`` and the entries with commas and a closing bracket, in at most ``MAX_BYTES`` of UTF-8.

    If they take more, the last entries are left out and counted: ``3 nodes X(node1,... and 2 more)``. ``count`` is the
    number of entries; the iterable may end after those that fit. A head that is too long by itself is cut.
    """
    head = cut(head, MAX_BYTES // 2)
    budget = MAX_BYTES - len(head.encode())
    parts, size = list[str](), 0
    for entry in entries:
        parts.append(f"{entry},")
        size += len(parts[-1].encode())
        if size > budget:
            break
    if len(parts) == count and size <= budget:
        # The bracket replaces the last comma.
        return f"{head}{''.join(parts)[:-1]})"
    while parts and size > budget - _MORE_ENTRIES_BYTES:
        size -= len(parts.pop().encode())
    return f"{head}{''.join(parts)}... and {count - len(parts)} more)"
