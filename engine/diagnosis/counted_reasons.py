"""Nodes that a scheduler's text counts by reason: ``0/3 nodes are available: 2 Insufficient nvidia.com/gpu, 1 …``."""

import re
from typing import Final, NamedTuple

_COUNTED: Final = re.compile(r"\d+/(?P<total>\d+) nodes are (?:un)?available: (?P<items>\d+ .*)", re.DOTALL)
_ITEM: Final = re.compile(r"(?P<count>\d+) (?P<reason>\S.*)", re.DOTALL)
_POSTFILTER: Final = re.compile(r"\.+ (?:preemption: |no new claims|still not schedulable).*", re.DOTALL)


class CountedReasons(NamedTuple):
    total: int
    reasons: list[tuple[str, int]]
    """Words of each reason with its number of nodes, in the order of the text."""


def parse_counted_reasons(text: str) -> CountedReasons | None:
    """Parse the counts of a text; None for a text without any."""
    counted = _COUNTED.search(text)
    if counted is None:
        return None
    items = _POSTFILTER.sub("", counted["items"]).strip().rstrip(".")
    matches = [match for item in re.split(r", (?=\d+ \S)", items) if (match := _ITEM.fullmatch(item))]
    reasons = [(match["reason"], int(match["count"][:9])) for match in matches]
    return CountedReasons(int(counted["total"][:9]), reasons)
