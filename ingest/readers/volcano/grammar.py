"""Words and files by which a line of Volcano's scheduler is recognised."""

import re
from typing import Final

from ingest.lines import klog

FILES: Final = re.compile(
    rb"(?:allocate|enqueue|backfill|preempt|reclaim|statement|session|predicate_helper|predicates|proportion|capacity|gang|drf"
    rb"|priority|binpack|nodeorder|overcommit|deviceshare|device_info|job_info|event_handlers|cache|scheduler|framework"
    rb"|conformance|sla|tdm|numaaware|resourcequota|unschedule_info)\.go:\d{1,6}\] "
)
OWN_WORDS: Final = (
    b"redicates failed: task", b"redicate failed for task", b"> nodes for Job <", b"Binding Task <", b" fit failed: ",
    b"(PodScheduled==", b" nodes are unavailable: ", b"deviceshare.go:", b"Open Session ", b"Close Session ",
    b"Try to allocate resource to ", b'"Try to allocate resource"', b"PodGroup to ", b"into cache.",
)  # fmt: skip
"""Words that only Volcano's scheduler writes; the names of its files are common."""


def is_volcano_line(line: bytes) -> bool:
    """Tell whether Volcano's scheduler wrote the line: one of its files, and words that only it writes."""
    head = line[:600]
    return klog.has_header(line) and any(words in head for words in OWN_WORDS) and bool(FILES.search(line, 0, 200))
